// SPDX-License-Identifier: PostgreSQL

//! The tables of the languages. See [`super::grammar`] for what a rule says.
//!
//! `function` becomes `method` in a type. A type that is only mentioned is no symbol, nor is a member without code of its own (a
//! field, a property): it stays with the text of its type.

use super::grammar::Shape::{Body, Container, Custom, Documented, Group, Leaf, Prefix, Through, Wrapper};
use super::grammar::{Grammar, Rule, Shape};
use super::language::Language;
use super::name;

const fn rule(node: &'static str, kind: &'static str, shape: Shape) -> Rule {
    Rule { node, kind, shape }
}

const fn through(node: &'static str) -> Rule {
    rule(node, "", Through)
}

const SLASHES: &[&str] = &["//"];
const SLASH_DOCS: &[&str] = &["/**", "///", "/*!", "//!"];

const RUST: Grammar = Grammar {
    language: tree_sitter_rust::LANGUAGE,
    nested: "::",
    member: "::",
    attributes: &["attribute_item"],
    docs: &["///", "/**"],
    comments: SLASHES,
    closers: &[],
    bodiless: false,
    rules: &[
        rule("function_item", "function", Leaf),
        rule("function_signature_item", "function", Leaf),
        rule("struct_item", "struct", Leaf),
        rule("enum_item", "enum", Leaf),
        rule("union_item", "union", Leaf),
        rule("trait_item", "trait", Container),
        rule("impl_item", "impl", Custom(name::rust_impl)),
        rule("mod_item", "module", Container),
        rule("macro_definition", "macro", Leaf),
        rule("type_item", "type", Leaf),
        rule("associated_type", "type", Leaf),
        rule("const_item", "constant", Documented),
        rule("static_item", "constant", Documented),
        through("foreign_mod_item"),
        through("declaration_list"),
    ],
};

const PYTHON: Grammar = Grammar {
    language: tree_sitter_python::LANGUAGE,
    nested: ".",
    member: ".",
    attributes: &[],
    docs: &["#"],
    comments: &["#"],
    closers: &[],
    bodiless: false,
    rules: &[
        rule("class_definition", "class", Container),
        rule("function_definition", "function", Leaf),
        rule("decorated_definition", "", Wrapper),
        rule("expression_statement", "", Custom(name::assigned_constant)),
        through("if_statement"),
        through("elif_clause"),
        through("else_clause"),
        through("try_statement"),
        through("except_clause"),
        through("finally_clause"),
        through("with_statement"),
        through("block"),
    ],
};

const TYPESCRIPT_RULES: &[Rule] = &[
    rule("class_declaration", "class", Container),
    rule("abstract_class_declaration", "class", Container),
    rule("interface_declaration", "interface", Container),
    rule("internal_module", "namespace", Container),
    rule("module", "namespace", Container),
    rule("enum_declaration", "enum", Leaf),
    rule("type_alias_declaration", "type", Leaf),
    rule("function_declaration", "function", Leaf),
    rule("generator_function_declaration", "function", Leaf),
    rule("function_signature", "function", Leaf),
    rule("method_definition", "method", Leaf),
    rule("method_signature", "method", Leaf),
    rule("abstract_method_signature", "method", Leaf),
    rule("public_field_definition", "", Custom(name::js_field)),
    rule("field_definition", "", Custom(name::js_field)),
    rule("lexical_declaration", "", Custom(name::js_declared)),
    rule("variable_declaration", "", Custom(name::js_declared)),
    rule("expression_statement", "", Custom(name::js_expression)),
    rule("ambient_declaration", "", Wrapper),
    rule("export_statement", "", Wrapper),
    through("statement_block"),
];

const fn typescript(language: tree_sitter_language::LanguageFn) -> Grammar {
    Grammar {
        language,
        nested: ".",
        member: ".",
        attributes: &["decorator"],
        docs: &["/**"],
        comments: SLASHES,
        closers: &[],
        bodiless: false,
        rules: TYPESCRIPT_RULES,
    }
}

const GO: Grammar = Grammar {
    language: tree_sitter_go::LANGUAGE,
    nested: ".",
    member: ".",
    attributes: &[],
    docs: &["//", "/*"],
    comments: SLASHES,
    closers: &[],
    bodiless: false,
    rules: &[
        rule("function_declaration", "function", Leaf),
        rule("method_declaration", "", Custom(name::go_method)),
        rule("type_declaration", "", Group),
        rule("type_spec", "", Custom(name::go_type)),
        rule("type_alias", "type", Leaf),
        rule("const_declaration", "", Group),
        rule("const_spec", "constant", Documented),
    ],
};

const JAVA: Grammar = Grammar {
    language: tree_sitter_java::LANGUAGE,
    nested: ".",
    member: ".",
    attributes: &[],
    docs: &["/**", "///"],
    comments: SLASHES,
    closers: &[],
    bodiless: false,
    rules: &[
        rule("class_declaration", "class", Container),
        rule("interface_declaration", "interface", Container),
        rule("enum_declaration", "enum", Container),
        rule("record_declaration", "record", Container),
        rule("annotation_type_declaration", "interface", Container),
        rule("method_declaration", "method", Leaf),
        rule("constructor_declaration", "method", Leaf),
        rule("compact_constructor_declaration", "method", Leaf),
        rule("annotation_type_element_declaration", "method", Leaf),
        rule("field_declaration", "constant", Custom(name::java_constant)),
        rule("constant_declaration", "constant", Custom(name::java_constant)),
        through("enum_body_declarations"),
    ],
};

const C: Grammar = Grammar {
    language: tree_sitter_c::LANGUAGE,
    nested: "::",
    member: "::",
    attributes: &[],
    docs: &["/*", "//"],
    comments: SLASHES,
    closers: &["#endif"],
    bodiless: false,
    rules: &[
        rule("function_definition", "", Custom(name::c_function)),
        rule("declaration", "", Custom(name::c_declaration)),
        rule("type_definition", "", Custom(name::c_typedef)),
        rule("struct_specifier", "struct", Body),
        rule("union_specifier", "union", Body),
        rule("enum_specifier", "enum", Body),
        rule("preproc_def", "constant", Documented),
        rule("preproc_function_def", "macro", Leaf),
        through("preproc_if"),
        through("preproc_ifdef"),
        through("preproc_else"),
        through("preproc_elif"),
        through("linkage_specification"),
        through("declaration_list"),
    ],
};

const CPP: Grammar = Grammar {
    language: tree_sitter_cpp::LANGUAGE,
    docs: SLASH_DOCS,
    rules: &[
        rule("function_definition", "", Custom(name::c_function)),
        rule("declaration", "", Custom(name::cpp_declaration)),
        rule("field_declaration", "", Custom(name::cpp_declaration)),
        rule("type_definition", "", Custom(name::cpp_typedef)),
        rule("class_specifier", "class", Container),
        rule("struct_specifier", "struct", Container),
        rule("union_specifier", "union", Container),
        rule("enum_specifier", "enum", Body),
        rule("namespace_definition", "namespace", Container),
        rule("template_declaration", "", Wrapper),
        rule("alias_declaration", "type", Leaf),
        rule("concept_definition", "concept", Leaf),
        rule("preproc_def", "constant", Documented),
        rule("preproc_function_def", "macro", Leaf),
        through("preproc_if"),
        through("preproc_ifdef"),
        through("preproc_else"),
        through("preproc_elif"),
        through("linkage_specification"),
        through("declaration_list"),
    ],
    ..C
};

const CSHARP: Grammar = Grammar {
    language: tree_sitter_c_sharp::LANGUAGE,
    nested: ".",
    member: ".",
    attributes: &[],
    docs: &["///", "/**"],
    comments: SLASHES,
    closers: &["#endif", "#endregion"],
    bodiless: true,
    rules: &[
        rule("namespace_declaration", "namespace", Container),
        rule("file_scoped_namespace_declaration", "namespace", Prefix),
        rule("class_declaration", "class", Container),
        rule("struct_declaration", "struct", Container),
        rule("interface_declaration", "interface", Container),
        rule("record_declaration", "record", Container),
        rule("enum_declaration", "enum", Leaf),
        rule("delegate_declaration", "type", Leaf),
        rule("method_declaration", "method", Leaf),
        rule("constructor_declaration", "method", Leaf),
        rule("destructor_declaration", "method", Leaf),
        rule("field_declaration", "constant", Custom(name::csharp_constant)),
        through("preproc_if"),
        through("preproc_else"),
        through("preproc_elif"),
    ],
};

const RUBY: Grammar = Grammar {
    language: tree_sitter_ruby::LANGUAGE,
    nested: "::",
    member: "#",
    attributes: &[],
    docs: &["#", "=begin"],
    comments: &["#"],
    closers: &["end"],
    bodiless: true,
    rules: &[
        rule("class", "class", Container),
        rule("module", "module", Container),
        rule("method", "method", Leaf),
        rule("singleton_method", "method", Custom(name::ruby_singleton)),
        rule("assignment", "constant", Custom(name::assigned_constant)),
        through("singleton_class"),
        through("body_statement"),
    ],
};

const PHP: Grammar = Grammar {
    language: tree_sitter_php::LANGUAGE_PHP,
    nested: "\\",
    member: "::",
    attributes: &[],
    docs: &["/**"],
    comments: &["//", "#"],
    closers: &["?>"],
    bodiless: false,
    rules: &[
        rule("namespace_definition", "namespace", Prefix),
        rule("class_declaration", "class", Container),
        rule("interface_declaration", "interface", Container),
        rule("trait_declaration", "trait", Container),
        rule("enum_declaration", "enum", Container),
        rule("function_definition", "function", Leaf),
        rule("method_declaration", "method", Leaf),
        rule("const_declaration", "constant", Custom(name::php_constant)),
        rule("expression_statement", "constant", Custom(name::php_define)),
        through("if_statement"),
        through("compound_statement"),
    ],
};

const BASH: Grammar = Grammar {
    language: tree_sitter_bash::LANGUAGE,
    nested: ".",
    member: ".",
    attributes: &[],
    docs: &["#"],
    comments: &["#"],
    closers: &["fi", "done", "esac"],
    bodiless: false,
    rules: &[
        rule("function_definition", "function", Leaf),
        rule("declaration_command", "constant", Custom(name::bash_constant)),
        through("if_statement"),
        through("else_clause"),
    ],
};

/// The grammar of a language; SQL has none.
pub fn grammar(language: Language) -> Option<Grammar> {
    Some(match language {
        Language::Rust => RUST,
        Language::Python => PYTHON,
        Language::TypeScript => typescript(tree_sitter_typescript::LANGUAGE_TYPESCRIPT),
        Language::Tsx => typescript(tree_sitter_typescript::LANGUAGE_TSX),
        Language::JavaScript => typescript(tree_sitter_javascript::LANGUAGE),
        Language::Go => GO,
        Language::Java => JAVA,
        Language::C => C,
        Language::Cpp => CPP,
        Language::CSharp => CSHARP,
        Language::Ruby => RUBY,
        Language::Php => PHP,
        Language::Bash => BASH,
        Language::Sql => return None,
    })
}
