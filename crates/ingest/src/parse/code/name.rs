// SPDX-License-Identifier: PostgreSQL

//! Names of symbols, where a field called `name` does not say it all.
//!
//! Each function reads one kind of node of one family of languages and says what it is, or nothing. All loops are
//! bounded, because a chain of declarators can be as long as the file.

use super::grammar::Found;
use tree_sitter::Node;

/// Longest name in bytes; what is longer is no name that anybody would look for.
const MAX_NAME: usize = 256;

/// Longest chain of nodes that is followed to a name.
const MAX_CHAIN: usize = 16;

/// The text of a node as a name.
pub fn text(node: Node<'_>, source: &str) -> Option<String> {
    let text = source.get(node.byte_range()).filter(|text| text.len() <= MAX_NAME)?;
    let name = text.split_whitespace().collect::<Vec<_>>().join(" ");
    (!name.is_empty()).then_some(name)
}

/// The text of a field as a name; quotes around it are no part of it.
pub fn field(node: Node<'_>, source: &str, field: &str) -> Option<String> {
    let name = text(node.child_by_field_name(field)?, source)?;
    let inner = name.trim_matches(['"', '\'']);
    if inner.is_empty() { None } else { Some(inner.to_owned()) }
}

fn named_children<'t>(node: Node<'t>, at_most: usize) -> Vec<Node<'t>> {
    let mut cursor = node.walk();
    node.named_children(&mut cursor).take(at_most).collect()
}

fn leaf<'t>(kind: &'static str, name: String, body: Option<Node<'t>>) -> Option<Found<'t>> {
    Some(Found { kind, name, body, container: false })
}

/// `impl Trait for Type<T>` is called `Type`.
pub fn rust_impl<'t>(node: Node<'t>, source: &str, _: bool) -> Option<Found<'t>> {
    let body = node.child_by_field_name("body")?;
    let mut of = node.child_by_field_name("type")?;
    for _ in 0..MAX_CHAIN {
        match of.child_by_field_name("type").filter(|_| of.kind() == "generic_type") {
            Some(inner) => of = inner,
            None => break,
        }
    }
    Some(Found { kind: "impl", name: text(of, source)?, body: Some(body), container: true })
}

/// A method of Go is called after its receiver: `Parser.Parse`.
pub fn go_method<'t>(node: Node<'t>, source: &str, _: bool) -> Option<Found<'t>> {
    let name = field(node, source, "name")?;
    let receiver = node.child_by_field_name("receiver")?;
    let mut of = receiver.named_child(0)?.child_by_field_name("type")?;
    for _ in 0..MAX_CHAIN {
        of = match of.kind() {
            "generic_type" => of.child_by_field_name("type")?,
            "type_identifier" | "qualified_type" => break,
            _ => of.named_child(0)?,
        };
    }
    leaf("method", format!("{}.{name}", text(of, source)?), node.child_by_field_name("body"))
}

/// A type of Go by what it is.
pub fn go_type<'t>(node: Node<'t>, source: &str, _: bool) -> Option<Found<'t>> {
    let of = node.child_by_field_name("type")?;
    let kind = match of.kind() {
        "struct_type" => "struct",
        "interface_type" => "interface",
        _ => "type",
    };
    leaf(kind, field(node, source, "name")?, Some(of))
}

/// A constant of a class in Java: `static final`, documented.
pub fn java_constant<'t>(node: Node<'t>, source: &str, documented: bool) -> Option<Found<'t>> {
    let declarator = node.child_by_field_name("declarator").filter(|_| documented)?;
    if node.kind() == "field_declaration" {
        let modifiers = source.get(node.start_byte()..declarator.start_byte())?;
        let words: Vec<&str> = modifiers.get(..modifiers.len().min(MAX_NAME))?.split_whitespace().collect();
        if !words.contains(&"static") || !words.contains(&"final") {
            return None;
        }
    }
    leaf("constant", field(declarator, source, "name")?, None)
}

/// A documented constant of PHP.
pub fn php_constant<'t>(node: Node<'t>, source: &str, documented: bool) -> Option<Found<'t>> {
    let elements = named_children(node, MAX_CHAIN);
    let element = elements.into_iter().find(|child| child.kind() == "const_element").filter(|_| documented)?;
    leaf("constant", text(element.named_child(0)?, source)?, None)
}

/// `NAME = value` of Python or Ruby, documented and in capitals (Ruby: a constant by its grammar).
pub fn assigned_constant<'t>(node: Node<'t>, source: &str, documented: bool) -> Option<Found<'t>> {
    let assignment = if node.kind() == "assignment" { node } else { node.named_child(0)? };
    if !documented || assignment.kind() != "assignment" {
        return None;
    }
    let left = assignment.child_by_field_name("left")?;
    let name = text(left, source)?;
    let capital = name.chars().all(|c| c.is_uppercase() || c == '_' || c.is_numeric());
    let constant = left.kind() == "constant" || (left.kind() == "identifier" && capital);
    if constant { leaf("constant", name, None) } else { None }
}

/// `def self.name` of Ruby; the dot is its separator.
pub fn ruby_singleton<'t>(node: Node<'t>, source: &str, _: bool) -> Option<Found<'t>> {
    let name = field(node, source, "name")?;
    leaf("method", format!(".{name}"), node.child_by_field_name("body"))
}

fn js_value<'t>(name: String, value: Node<'t>, function: &'static str) -> Option<Found<'t>> {
    let body = value.child_by_field_name("body");
    match value.kind() {
        "arrow_function" | "function_expression" | "generator_function" | "function_declaration" => {
            leaf(function, name, body)
        }
        "class" | "class_declaration" => Some(Found { kind: "class", name, body, container: body.is_some() }),
        _ => None,
    }
}

/// `const name = …` of JavaScript: a function, a class, or a documented constant.
pub fn js_declared<'t>(node: Node<'t>, source: &str, documented: bool) -> Option<Found<'t>> {
    let declarators = named_children(node, MAX_CHAIN);
    let mut declarators = declarators.into_iter().filter(|child| child.kind() == "variable_declarator");
    let (first, second) = (declarators.next()?, declarators.next());
    let named = first.child_by_field_name("name").filter(|name| second.is_none() && name.kind() == "identifier")?;
    let name = text(named, source)?;
    let value = first.child_by_field_name("value");
    let found = value.and_then(|value| js_value(name.clone(), value, "function"));
    let constant = node.child_by_field_name("kind").is_some_and(|kind| kind.kind() == "const");
    if found.is_none() && documented && constant { leaf("constant", name, value) } else { found }
}

/// `exports.name = function …` of JavaScript, and the namespaces of TypeScript, which are expressions to it.
pub fn js_expression<'t>(node: Node<'t>, source: &str, _: bool) -> Option<Found<'t>> {
    let child = node.named_child(0)?;
    if child.kind() == "internal_module" {
        let body = child.child_by_field_name("body");
        return Some(Found { kind: "namespace", name: field(child, source, "name")?, body, container: body.is_some() });
    }
    if child.kind() != "assignment_expression" {
        return None;
    }
    let left = child.child_by_field_name("left")?;
    if !matches!(left.kind(), "identifier" | "member_expression") {
        return None;
    }
    let name = text(left, source).filter(|name| !name.contains([' ', '(', '[']))?;
    js_value(name, child.child_by_field_name("right")?, "function")
}

/// `export default` of something without a name is called `default`, as its importers do.
pub fn js_default<'t>(node: Node<'t>, _: &str, _: bool) -> Option<Found<'t>> {
    js_value("default".to_owned(), node.child_by_field_name("value")?, "function")
}

/// A field of a class that holds a function.
pub fn js_field<'t>(node: Node<'t>, source: &str, _: bool) -> Option<Found<'t>> {
    let name = field(node, source, "name").or_else(|| field(node, source, "property"))?;
    js_value(name, node.child_by_field_name("value")?, "method").filter(|found| found.kind == "method")
}

/// The name at the end of a chain of declarators of C, and whether it is that of a function.
fn declarator<'t>(node: Node<'t>) -> Option<(Node<'t>, bool)> {
    let mut at = node.child_by_field_name("declarator")?;
    let mut function = false;
    for _ in 0..MAX_CHAIN {
        match at.kind() {
            "identifier"
            | "field_identifier"
            | "type_identifier"
            | "qualified_identifier"
            | "destructor_name"
            | "operator_name"
            | "template_function"
            | "operator_cast"
            | "primitive_type" => {
                return Some((at, function));
            }
            "function_declarator" => function = true,
            _ => {}
        }
        at = at.child_by_field_name("declarator").or_else(|| at.named_child(0))?;
    }
    None
}

fn declared_name(node: Node<'_>, source: &str) -> Option<String> {
    let name = source.get(node.byte_range()).filter(|name| name.len() <= MAX_NAME)?;
    // A conversion holds its (empty) parameters.
    let name = if name.contains("operator") { name.split(" (").next()?.trim_end_matches("()") } else { name };
    let name: String = name.split_whitespace().collect::<Vec<_>>().join(" ");
    (!name.is_empty()).then_some(name)
}

/// A function of C or C++.
pub fn c_function<'t>(node: Node<'t>, source: &str, _: bool) -> Option<Found<'t>> {
    let (name, function) = declarator(node)?;
    let function = function || name.kind() == "operator_cast";
    let kind = if name.kind() == "qualified_identifier" { "method" } else { "function" };
    if function { leaf(kind, declared_name(name, source)?, node.child_by_field_name("body")) } else { None }
}

fn c_specifier(node: &str) -> Option<&'static str> {
    Some(match node {
        "struct_specifier" => "struct",
        "union_specifier" => "union",
        "enum_specifier" => "enum",
        "class_specifier" => "class",
        _ => return None,
    })
}

/// A declaration of C or C++: of a type with a body, or of a documented function.
pub fn c_declaration<'t>(node: Node<'t>, source: &str, documented: bool) -> Option<Found<'t>> {
    if let Some(of) = node.child_by_field_name("type")
        && let Some(kind) = c_specifier(of.kind())
        && let Some(body) = of.child_by_field_name("body")
    {
        let container = matches!(of.kind(), "class_specifier");
        return Some(Found { kind, name: field(of, source, "name")?, body: Some(body), container });
    }
    let (name, function) = declarator(node).filter(|_| documented)?;
    if function { leaf("function", declared_name(name, source)?, None) } else { None }
}

/// `typedef` of C: what it names, by what it is.
pub fn c_typedef<'t>(node: Node<'t>, source: &str, _: bool) -> Option<Found<'t>> {
    let (name, _) = declarator(node)?;
    let of = node.child_by_field_name("type")?;
    let body = of.child_by_field_name("body");
    let kind = c_specifier(of.kind()).filter(|_| body.is_some()).unwrap_or("type");
    leaf(kind, text(name, source)?, body)
}
