//! The `#[holdpoint::tool]` attribute. It only rewrites a function; everything that it promises is the runtime's.
//!
//! What it writes speaks of `::holdpoint::__private`, so that a program needs no crate but `holdpoint`.

mod options;
mod parameters;
mod tool;

#[cfg(test)]
mod tests;

use proc_macro::TokenStream;

/// Makes a typed tool of an async function.
///
/// The function becomes one that takes nothing and returns the tool. The tool has the function's name, its doc comment
/// as description, and a JSON schema of its parameters; arguments that no parameter is named after are refused. Doc
/// comments and `#[serde(…)]` or `#[schemars(…)]` attributes on a parameter are those of its field in the schema. A
/// first parameter of type `ToolContext` is given the call's context and is no argument.
///
/// The function may return whatever a tool may: text, JSON, content, nothing, or a result of one of them whose error
/// prints.
///
/// | option | meaning |
/// | --- | --- |
/// | `name = "send_mail"` | what models call it, where it is not the function's name |
/// | `needs_approval` | a person must look at every call |
/// | `needs_approval_when = path` | a person must look when this says so: a function or closure of `(ToolContext, serde_json::Value)`, as in `ToolBuilder::needs_approval_when` |
/// | `effect = read_only` | what a crash in the middle means: `read_only`, `idempotent` or `at_most_once`, the default |
/// | `timeout_seconds = 30` | how long one run of it may take |
///
/// ```ignore
/// use holdpoint::ToolContext;
///
/// /// Says what the weather is.
/// #[holdpoint::tool(effect = read_only, needs_approval_when = is_far)]
/// async fn get_weather(
///     context: ToolContext,
///     /// The city.
///     location: String,
///     #[serde(default)] days: Option<u32>,
/// ) -> Result<String, std::io::Error> {
///     Ok(format!("sunny in {location} for {} days", days.unwrap_or(1)))
/// }
///
/// async fn is_far(_: ToolContext, arguments: serde_json::Value) -> bool {
///     arguments["location"] != "Oakland"
/// }
///
/// let agent = holdpoint::Agent::builder("Weather").tool(get_weather()).build()?;
/// ```
#[proc_macro_attribute]
pub fn tool(options: TokenStream, function: TokenStream) -> TokenStream {
    tool::expand(options.into(), function.into()).unwrap_or_else(syn::Error::into_compile_error).into()
}
