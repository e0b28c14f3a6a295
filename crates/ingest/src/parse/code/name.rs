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

/// The one node of a kind; with several, none speaks for all.
fn only<'t>(nodes: Vec<Node<'t>>, kind: &str) -> Option<Node<'t>> {
    let mut nodes = nodes.into_iter().filter(|node| node.kind() == kind);
    let first = nodes.next()?;
    if nodes.next().is_none() { Some(first) } else { None }
}

/// Whether a child of some kind is this word: a modifier of a declaration.
fn has(node: Node<'_>, source: &str, kind: &str, word: &str) -> bool {
    let children = named_children(node, MAX_CHAIN);
    children.into_iter().any(|child| child.kind() == kind && source.get(child.byte_range()) == Some(word))
}

fn leaf<'t>(kind: &'static str, name: String, body: Option<Node<'t>>) -> Option<Found<'t>> {
    Some(Found { kind, name, body, container: false })
}

/// `impl Trait for Type<T>` and `impl Trait for &Type` are called `Type`.
pub fn rust_impl<'t>(node: Node<'t>, source: &str, _: bool) -> Option<Found<'t>> {
    let body = node.child_by_field_name("body")?;
    let mut of = node.child_by_field_name("type")?;
    for _ in 0..MAX_CHAIN {
        match of.child_by_field_name("type").filter(|_| matches!(of.kind(), "generic_type" | "reference_type")) {
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

/// `define('NAME', value)` of PHP, documented, also behind `defined('NAME') ||`. Whatever namespace it stands in, its name is
/// whole, which the leading backslash says.
pub fn php_define<'t>(node: Node<'t>, source: &str, documented: bool) -> Option<Found<'t>> {
    let statement = node.named_child(0).filter(|_| documented)?;
    let call =
        if statement.kind() == "binary_expression" { statement.child_by_field_name("right")? } else { statement };
    let function = text(call.child_by_field_name("function")?, source)?;
    if call.kind() != "function_call_expression" || !function.trim_start_matches('\\').eq_ignore_ascii_case("define") {
        return None;
    }
    let argument = call.child_by_field_name("arguments")?.named_child(0)?;
    let value = named_children(argument, MAX_CHAIN).pop()?;
    let plain = |part: &Node<'_>| matches!(part.kind(), "string_content" | "escape_sequence");
    if !matches!(value.kind(), "string" | "encapsed_string") || !named_children(value, MAX_CHAIN).iter().all(plain) {
        return None;
    }
    let name = text(value, source)?.trim_matches(['"', '\'']).replace("\\\\", "\\");
    let name = name.trim_start_matches('\\');
    if name.is_empty() { None } else { leaf("constant", format!("\\{name}"), None) }
}

/// `readonly NAME=value` of a shell, or the same by `declare -r`, documented and alone in its command.
pub fn bash_constant<'t>(node: Node<'t>, source: &str, documented: bool) -> Option<Found<'t>> {
    let command = node.child(0).filter(|_| documented)?;
    let children = named_children(node, MAX_CHAIN);
    let read_only = |child: &Node<'_>| {
        let option = text(*child, source).filter(|_| child.kind() == "word");
        option.is_some_and(|option| option.starts_with('-') && option.contains('r'))
    };
    if !(command.kind() == "readonly" || children.iter().any(read_only)) {
        return None;
    }
    let name = only(children, "variable_assignment")?.child_by_field_name("name")?;
    if name.kind() == "variable_name" { leaf("constant", text(name, source)?, None) } else { None }
}

/// A constant of a type in C#: `const` or `static readonly`, documented and alone in its declaration.
pub fn csharp_constant<'t>(node: Node<'t>, source: &str, documented: bool) -> Option<Found<'t>> {
    let says = |word| has(node, source, "modifier", word);
    if !documented || !(says("const") || (says("static") && says("readonly"))) {
        return None;
    }
    let declaration = only(named_children(node, MAX_CHAIN), "variable_declaration")?;
    let declarator = only(named_children(declaration, MAX_CHAIN), "variable_declarator")?;
    leaf("constant", field(declarator, source, "name")?, None)
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

/// A declaration of C: of a type with a body, of a documented function, of a documented constant.
pub fn c_declaration<'t>(node: Node<'t>, source: &str, documented: bool) -> Option<Found<'t>> {
    if let Some(of) = node.child_by_field_name("type")
        && let Some(kind) = c_specifier(of.kind())
        && let Some(body) = of.child_by_field_name("body")
        && let Some(name) = field(of, source, "name")
    {
        return leaf(kind, name, Some(body));
    }
    let (name, function) = declarator(node).filter(|_| documented)?;
    if function { leaf("function", declared_name(name, source)?, None) } else { c_constant(node, source) }
}

/// `const` or `constexpr` of C or C++, alone in its declaration; in a type only `static`, since another is a field.
fn c_constant<'t>(node: Node<'t>, source: &str) -> Option<Found<'t>> {
    let fixed = has(node, source, "type_qualifier", "constexpr");
    let member = node.kind() == "field_declaration";
    if member && !has(node, source, "storage_class_specifier", "static") {
        return None;
    }
    let mut constant = fixed || has(node, source, "type_qualifier", "const");
    let mut cursor = node.walk();
    let mut declarators = node.children_by_field_name("declarator", &mut cursor);
    let mut at = declarators.next()?;
    if declarators.next().is_some() {
        return None;
    }
    for _ in 0..MAX_CHAIN {
        match at.kind() {
            "identifier" | "field_identifier" | "qualified_identifier" if constant => {
                return leaf("constant", declared_name(at, source)?, None);
            }
            // What a pointer points to may be constant while the pointer is not.
            "pointer_declarator" => constant = fixed || has(at, source, "type_qualifier", "const"),
            "structured_binding_declarator" => return None,
            _ => {}
        }
        at = at.child_by_field_name("declarator").or_else(|| at.named_child(0))?;
    }
    None
}

/// `typedef` of C: what it names, by what it is.
pub fn c_typedef<'t>(node: Node<'t>, source: &str, _: bool) -> Option<Found<'t>> {
    let (name, _) = declarator(node)?;
    let of = node.child_by_field_name("type")?;
    let body = of.child_by_field_name("body");
    let kind = c_specifier(of.kind()).filter(|_| body.is_some()).unwrap_or("type");
    leaf(kind, text(name, source)?, body)
}

/// The same as in C, but types have methods.
pub fn cpp_declaration<'t>(node: Node<'t>, source: &str, documented: bool) -> Option<Found<'t>> {
    c_declaration(node, source, documented).map(with_methods)
}

/// The same as in C, but types have methods.
pub fn cpp_typedef<'t>(node: Node<'t>, source: &str, documented: bool) -> Option<Found<'t>> {
    c_typedef(node, source, documented).map(with_methods)
}

fn with_methods(found: Found<'_>) -> Found<'_> {
    let container = found.body.is_some() && matches!(found.kind, "class" | "struct" | "union");
    Found { container, ..found }
}
