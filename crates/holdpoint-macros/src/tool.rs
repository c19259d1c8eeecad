//! Rewrites an async function as one that returns a tool.

use proc_macro2::{Span, TokenStream};
use quote::{format_ident, quote, quote_spanned};
use syn::ext::IdentExt;
use syn::spanned::Spanned;
use syn::{Attribute, Error, Expr, ItemFn, Lit, LitStr, Meta, ReturnType, Signature};

use crate::options::{Approval, Options, check_name};
use crate::parameters::Parameters;

const DESCRIPTION_BYTES_MAX: usize = 64 << 10;

pub(crate) fn expand(options: TokenStream, function: TokenStream) -> syn::Result<TokenStream> {
    let options: Options = syn::parse2(options)?;
    let not_a_function = |error: Error| Error::new(error.span(), "`#[tool]` stands on an async function with a body");
    let mut function: ItemFn = syn::parse2(function).map_err(not_a_function)?;
    check_signature(&function.sig)?;
    let parameters = Parameters::take(&mut function.sig.inputs)?;
    let name = tool_name(&options, &function)?;
    let description = description(&function.attrs)?;
    Ok(write(&options, function, &parameters, &name, &description))
}

fn check_signature(signature: &Signature) -> syn::Result<()> {
    if signature.asyncness.is_none() {
        return Err(Error::new_spanned(signature.fn_token, "a tool is an `async fn`"));
    }
    if let Some(constness) = &signature.constness {
        return Err(Error::new_spanned(constness, "a tool is a plain `async fn`"));
    }
    if let Some(unsafety) = &signature.unsafety {
        return Err(Error::new_spanned(unsafety, "a tool is called by a model's wish: it cannot be unsafe"));
    }
    if let Some(abi) = &signature.abi {
        return Err(Error::new_spanned(abi, "a tool is a plain `async fn`"));
    }
    if let Some(variadic) = &signature.variadic {
        return Err(Error::new_spanned(variadic, "a tool has named arguments only"));
    }
    if !signature.generics.params.is_empty() {
        let message = "a tool has no generics: its arguments need one schema";
        return Err(Error::new_spanned(&signature.generics, message));
    }
    match &signature.generics.where_clause {
        Some(clause) => Err(Error::new_spanned(clause, "a tool has no generics: its arguments need one schema")),
        None => Ok(()),
    }
}

fn tool_name(options: &Options, function: &ItemFn) -> syn::Result<LitStr> {
    if let Some(name) = &options.name {
        return Ok(name.clone());
    }
    let (name, span) = (function.sig.ident.unraw().to_string(), function.sig.ident.span());
    check_name(&name)
        .map_err(|problem| Error::new(span, format!("{problem}; give it one: `#[tool(name = \"…\")]`")))?;
    Ok(LitStr::new(&name, span))
}

/// The doc comment as text, without the space that follows each `///`.
fn description(attributes: &[Attribute]) -> syn::Result<LitStr> {
    let mut lines = Vec::new();
    let mut span = Span::call_site();
    for attribute in attributes.iter().filter(|attribute| attribute.path().is_ident("doc")) {
        // `#[doc(hidden)]` and the like say nothing.
        let Meta::NameValue(doc) = &attribute.meta else { continue };
        let Expr::Lit(text) = &doc.value else {
            let message = "a tool's description is written out: `///` comments, or a string";
            return Err(Error::new_spanned(&doc.value, message));
        };
        let Lit::Str(text) = &text.lit else { continue };
        span = text.span();
        lines.extend(text.value().split('\n').map(|line| line.strip_prefix(' ').unwrap_or(line).trim_end().to_owned()));
    }
    let text = lines.join("\n").trim().to_owned();
    if text.len() > DESCRIPTION_BYTES_MAX {
        return Err(Error::new(span, "the description is longer than 64 KiB"));
    }
    Ok(LitStr::new(&text, span))
}

fn write(
    options: &Options,
    mut function: ItemFn,
    parameters: &Parameters,
    name: &LitStr,
    description: &LitStr,
) -> TokenStream {
    let (outer, inner): (Vec<_>, Vec<_>) = function.attrs.drain(..).partition(is_of_the_tool);
    let lints = inner.iter().filter(|attribute| attribute.path().is_ident("allow"));
    let (visibility, called) = (&function.vis, &function.sig.ident);
    let (signature, body) = (&function.sig, &function.block);
    let settings = settings(options);

    let type_name = format_ident!("__HoldpointArguments");
    let fields = parameters.arguments.iter().map(|argument| {
        let (attributes, name, of) = (&argument.attributes, &argument.name, &argument.of);
        quote!(#(#attributes)* #name: #of)
    });
    let given = parameters.arguments.iter().map(|argument| {
        let name = &argument.name;
        quote!(__arguments.#name)
    });
    let context = parameters.takes_context.then(|| quote!(__context,));
    let result = result(&signature.output, quote!(#called(#context #(#given),*).await));

    quote! {
        #(#outer)*
        #(#lints)*
        #visibility fn #called() -> ::holdpoint::__private::Tool {
            #[derive(::holdpoint::__private::serde::Deserialize, ::holdpoint::__private::schemars::JsonSchema)]
            #[serde(crate = "::holdpoint::__private::serde", deny_unknown_fields)]
            #[schemars(crate = "::holdpoint::__private::schemars")]
            struct #type_name {
                #(#fields),*
            }

            #(#inner)*
            #signature #body

            ::holdpoint::__private::Tool::builder(#name)
                .description(#description)
                #settings
                .function(|__context: ::holdpoint::__private::ToolContext, __arguments: #type_name| async move {
                    #result
                })
                .expect("the name was checked when this was compiled, and the schema comes from a type")
        }
    }
}

/// Lints and other macros are for the function as it was written; the rest is for the one that is called.
fn is_of_the_tool(attribute: &Attribute) -> bool {
    ["doc", "cfg", "deprecated", "must_use"].iter().any(|name| attribute.path().is_ident(name))
}

fn settings(options: &Options) -> TokenStream {
    let approval = match &options.approval {
        Approval::Unsaid => None,
        Approval::Said(always) => Some(quote!(.needs_approval(#always))),
        Approval::When(predicate) => Some(quote_spanned!(predicate.span()=> .needs_approval_when(#predicate))),
    };
    let effect = options.effect.as_ref().map(|effect| quote!(.effect(#effect)));
    let timeout = options.timeout_seconds.map(|seconds| quote!(.timeout(::core::time::Duration::from_secs(#seconds))));
    quote!(#approval #effect #timeout)
}

/// Said of the return type, so that one that is no tool result is pointed at.
fn result(output: &ReturnType, called: TokenStream) -> TokenStream {
    let span = match output {
        ReturnType::Default => Span::call_site(),
        ReturnType::Type(_, of) => of.span(),
    };
    let convert = quote_spanned!(span=> ::holdpoint::__private::IntoResult::into_result);
    quote!(#convert(#called))
}
