//! The parameters of a tool's function: the context, if it is asked for, and the arguments.

use proc_macro2::{TokenStream, TokenTree};
use quote::ToTokens;
use syn::punctuated::Punctuated;
use syn::{Attribute, Error, FnArg, Ident, Pat, PatType, Token, Type};

/// What a function takes.
pub(crate) struct Parameters {
    pub(crate) takes_context: bool,
    pub(crate) arguments: Vec<Argument>,
}

/// One argument: a field of the arguments' type, and a parameter of the function.
pub(crate) struct Argument {
    pub(crate) attributes: Vec<Attribute>,
    pub(crate) name: Ident,
    pub(crate) of: Type,
}

impl Parameters {
    /// Reads the parameters, and takes their attributes away: those are for the arguments' type.
    pub(crate) fn take(inputs: &mut Punctuated<FnArg, Token![,]>) -> syn::Result<Self> {
        let mut parameters = Self { takes_context: false, arguments: Vec::new() };
        for (index, input) in inputs.iter_mut().enumerate() {
            let parameter = match input {
                FnArg::Receiver(receiver) => {
                    return Err(Error::new_spanned(receiver, "a tool is a free function: it has no `self`"));
                }
                FnArg::Typed(parameter) => parameter,
            };
            if is_context(&parameter.ty) {
                check_context(parameter, index)?;
                parameters.takes_context = true;
            } else {
                parameters.arguments.push(Argument::take(parameter)?);
            }
        }
        Ok(parameters)
    }
}

impl Argument {
    fn take(parameter: &mut PatType) -> syn::Result<Self> {
        let Pat::Ident(name) = &*parameter.pat else {
            let message = "an argument needs a plain name, which models give it by; take it apart in the function";
            return Err(Error::new_spanned(&parameter.pat, message));
        };
        if name.by_ref.is_some() || name.subpat.is_some() {
            return Err(Error::new_spanned(name, "an argument needs a plain name"));
        }
        check_owned(&parameter.ty)?;
        if let Some(flatten) = parameter.attrs.iter().find(|attribute| is_flatten(attribute)) {
            let message = "arguments are not flattened: what no parameter is named after is refused";
            return Err(Error::new_spanned(flatten, message));
        }
        let attributes = std::mem::take(&mut parameter.attrs);
        Ok(Self { attributes, name: name.ident.clone(), of: (*parameter.ty).clone() })
    }
}

fn is_context(of: &Type) -> bool {
    match of {
        Type::Path(path) => path.path.segments.last().is_some_and(|last| last.ident == "ToolContext"),
        Type::Reference(reference) => is_context(&reference.elem),
        Type::Group(group) => is_context(&group.elem),
        Type::Paren(paren) => is_context(&paren.elem),
        _ => false,
    }
}

fn check_context(parameter: &PatType, index: usize) -> syn::Result<()> {
    if matches!(*parameter.ty, Type::Reference(_)) {
        return Err(Error::new_spanned(&parameter.ty, "the context is given by value: `ToolContext`"));
    }
    if index > 0 {
        return Err(Error::new_spanned(parameter, "the context is the first parameter, and there is one"));
    }
    match parameter.attrs.first() {
        Some(attribute) => Err(Error::new_spanned(attribute, "the context is no argument: it takes no attributes")),
        None => Ok(()),
    }
}

fn is_flatten(attribute: &Attribute) -> bool {
    let mut is_flatten = false;
    if attribute.path().is_ident("serde") {
        // What this does not understand is for serde to judge.
        let _ = attribute.parse_nested_meta(|option| {
            is_flatten |= option.path.is_ident("flatten");
            Ok(())
        });
    }
    is_flatten
}

fn check_owned(of: &Type) -> syn::Result<()> {
    if let Type::ImplTrait(_) = of {
        return Err(Error::new_spanned(of, "an argument needs a type of its own, not `impl Trait`"));
    }
    if borrows(of.to_token_stream()) {
        let message = "an argument is owned: `String` instead of `&str`, `Vec<T>` instead of `&[T]`";
        return Err(Error::new_spanned(of, message));
    }
    Ok(())
}

/// Whether a type has a `&` or a lifetime other than `'static` in it.
fn borrows(tokens: TokenStream) -> bool {
    let mut after_quote = false;
    tokens.into_iter().any(|token| {
        let is_lifetime = after_quote && !matches!(&token, TokenTree::Ident(name) if name == "static");
        after_quote = matches!(&token, TokenTree::Punct(punct) if punct.as_char() == '\'');
        is_lifetime
            || match token {
                TokenTree::Punct(punct) => punct.as_char() == '&',
                TokenTree::Group(group) => borrows(group.stream()),
                _ => false,
            }
    })
}
