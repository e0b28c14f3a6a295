"""Collector, quality control and surge alerts for the Corran coast gauges.

A frame travels through the modules in this order: ``collector`` takes it from
the wire, ``spool`` makes it durable, ``frames`` decodes it, ``clock`` corrects
its time, ``quality`` flags it, ``store`` keeps it. ``surge`` and ``alerts``
read from the store and never from the wire.
"""

__version__ = "3.4.0"

#: Heights are integers of millimetres everywhere inside the package; metres
#: appear only in exports and in the API.
MM_PER_M = 1000

#: Samples of one minute; Sallow Bar sends sixty of them in one frame.
SAMPLE_SECONDS = 60
