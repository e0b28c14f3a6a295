//! A ring of the last values, with their median.

/// Keeps the last `capacity` values, both in order of arrival and sorted.
///
/// With eleven values, moving parts of a sorted array is faster than two heaps;
/// the turning point on the boxes lies near two hundred.
pub struct MedianRing {
    arrival: Vec<f64>,
    sorted: Vec<f64>,
    next: usize,
    capacity: usize,
}

impl MedianRing {
    /// An empty ring.
    ///
    /// # Panics
    ///
    /// If the capacity is zero.
    pub fn new(capacity: usize) -> Self {
        assert!(capacity > 0, "a ring has room for at least one value");
        Self { arrival: Vec::with_capacity(capacity), sorted: Vec::with_capacity(capacity), next: 0, capacity }
    }

    /// Number of values so far, at most the capacity.
    pub fn len(&self) -> usize {
        self.arrival.len()
    }

    /// Whether there is no value yet.
    pub fn is_empty(&self) -> bool {
        self.arrival.is_empty()
    }

    /// Takes a value and drops the oldest when the ring is full. NaN is ignored.
    pub fn push(&mut self, value: f64) {
        if value.is_nan() {
            return;
        }
        if self.arrival.len() == self.capacity {
            let old = std::mem::replace(&mut self.arrival[self.next], value);
            let gone = self.sorted.partition_point(|&x| x < old);
            self.sorted.remove(gone);
        } else {
            self.arrival.push(value);
        }
        self.next = (self.next + 1) % self.capacity;
        let place = self.sorted.partition_point(|&x| x < value);
        self.sorted.insert(place, value);
    }

    /// Median; the mean of the middle two for an even number of values.
    pub fn median(&self) -> Option<f64> {
        let n = self.sorted.len();
        match n {
            0 => None,
            _ if n % 2 == 1 => Some(self.sorted[n / 2]),
            _ => Some((self.sorted[n / 2 - 1] + self.sorted[n / 2]) / 2.0),
        }
    }

    /// Median of the distances from the median.
    pub fn deviation(&self) -> Option<f64> {
        let middle = self.median()?;
        let mut distances: Vec<f64> = self.sorted.iter().map(|x| (x - middle).abs()).collect();
        distances.sort_by(f64::total_cmp);
        Some(distances[distances.len() / 2])
    }

    /// Forgets everything, as after a hole in the record.
    pub fn clear(&mut self) {
        self.arrival.clear();
        self.sorted.clear();
        self.next = 0;
    }
}
