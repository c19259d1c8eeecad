//! What stands in the brackets of `#[tool(…)]`.

use proc_macro2::TokenStream;
use quote::quote;
use syn::parse::{Parse, ParseStream};
use syn::punctuated::Punctuated;
use syn::{Error, Expr, Ident, LitBool, LitInt, LitStr, Path, Token};

/// The options of one tool.
#[derive(Default)]
pub(crate) struct Options {
    pub(crate) name: Option<LitStr>,
    pub(crate) approval: Approval,
    pub(crate) effect: Option<TokenStream>,
    pub(crate) timeout_seconds: Option<u64>,
}

/// When a person must look.
#[derive(Default)]
pub(crate) enum Approval {
    #[default]
    Unsaid,
    Said(bool),
    When(Box<Expr>),
}

const KNOWN: &str = "one of `name = \"…\"`, `needs_approval`, `needs_approval_when = …`, `effect = …` and `timeout_seconds = …` expected";

impl Parse for Options {
    fn parse(input: ParseStream) -> syn::Result<Self> {
        let mut options = Self::default();
        for option in Punctuated::<Entry, Token![,]>::parse_terminated(input)? {
            options.take(option)?;
        }
        Ok(options)
    }
}

impl Options {
    fn take(&mut self, Entry { key, value }: Entry) -> syn::Result<()> {
        let twice = || Error::new(key.span(), format!("`{key}` is said twice"));
        match value {
            Value::Name(name) if self.name.is_none() => self.name = Some(name),
            Value::Effect(effect) if self.effect.is_none() => self.effect = Some(effect),
            Value::TimeoutSeconds(seconds) if self.timeout_seconds.is_none() => self.timeout_seconds = Some(seconds),
            Value::Approval(approval) => match self.approval {
                Approval::Unsaid => self.approval = approval,
                _ => return Err(Error::new(key.span(), "when approval is needed is said twice")),
            },
            _ => return Err(twice()),
        }
        Ok(())
    }
}

struct Entry {
    key: Ident,
    value: Value,
}

enum Value {
    Name(LitStr),
    Approval(Approval),
    Effect(TokenStream),
    TimeoutSeconds(u64),
}

impl Parse for Entry {
    fn parse(input: ParseStream) -> syn::Result<Self> {
        let key: Ident = input.parse().map_err(|error| Error::new(error.span(), KNOWN))?;
        let value = match key.to_string().as_str() {
            "name" => Value::Name(name(input)?),
            "needs_approval" => Value::Approval(Approval::Said(flag(input)?)),
            "needs_approval_when" => Value::Approval(Approval::When(Box::new(predicate(input)?))),
            "effect" => Value::Effect(effect(input)?),
            "timeout_seconds" => Value::TimeoutSeconds(seconds(input)?),
            _ => return Err(Error::new(key.span(), KNOWN)),
        };
        Ok(Self { key, value })
    }
}

fn name(input: ParseStream) -> syn::Result<LitStr> {
    input.parse::<Token![=]>()?;
    let name: LitStr = input.parse()?;
    check_name(&name.value()).map_err(|problem| Error::new(name.span(), problem))?;
    Ok(name)
}

/// The rule of `ToolName` in `holdpoint-core`, so that building the tool cannot fail.
pub(crate) fn check_name(name: &str) -> Result<(), String> {
    let is_name = (1..=128).contains(&name.len())
        && name.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-' | b'.' | b':'));
    let problem = || format!("{name:?} is no tool name: 1 to 128 letters, digits, '_', '-', '.' or ':' expected");
    is_name.then_some(()).ok_or_else(problem)
}

fn flag(input: ParseStream) -> syn::Result<bool> {
    if !input.peek(Token![=]) {
        return Ok(true);
    }
    input.parse::<Token![=]>()?;
    Ok(input.parse::<LitBool>()?.value)
}

fn predicate(input: ParseStream) -> syn::Result<Expr> {
    input.parse::<Token![=]>()?;
    let predicate: Expr = input.parse()?;
    match predicate {
        Expr::Path(_) | Expr::Closure(_) => Ok(predicate),
        other => Err(Error::new_spanned(other, "the path of a function, or a closure, expected")),
    }
}

fn effect(input: ParseStream) -> syn::Result<TokenStream> {
    input.parse::<Token![=]>()?;
    let expected = "`read_only`, `idempotent` or `at_most_once` expected";
    let effect: Path = input.parse().map_err(|error| Error::new(error.span(), expected))?;
    let variant = match effect.get_ident().map(Ident::to_string).as_deref() {
        Some("read_only") => quote!(ReadOnly),
        Some("idempotent") => quote!(Idempotent),
        Some("at_most_once") => quote!(AtMostOnce),
        _ => return Err(Error::new_spanned(effect, expected)),
    };
    Ok(quote!(::holdpoint::__private::Effect::#variant))
}

fn seconds(input: ParseStream) -> syn::Result<u64> {
    input.parse::<Token![=]>()?;
    let seconds: LitInt = input.parse()?;
    let expected = || Error::new(seconds.span(), "a number of seconds from 1 to 86400 expected");
    seconds.base10_parse().ok().filter(|seconds| (1..=86_400).contains(seconds)).ok_or_else(expected)
}
