//! Models for holdpoint: OpenAI and what is compatible with it, Anthropic, and a scripted one that needs neither key nor
//! network.
//!
//! - [`scripted`] replies from a script: for tests, examples and demo agents.
//! - `openai` (feature `openai`) speaks chat completions and responses, also to Ollama, vLLM and other servers.
//! - `anthropic` (feature `anthropic`) speaks messages.
//! - [`fallback`] asks a second model where the first gives no reply.
//! - `providers` finds the model that a name such as `openai/gpt-4o` means.
//! - `settings` lists what an agent may set for its model.
//!
//! Every provider streams: words, thoughts and the arguments of calls are told as they arrive. A reply is only taken
//! whole. A request that fails is made again a few times, as long as nothing of the reply was told; see
//! `HttpSettings`. What cannot be done is a fault that says what to check, and never a key.

pub mod fallback;
pub mod scripted;

mod told;

#[cfg(feature = "anthropic")]
pub mod anthropic;
#[cfg(feature = "openai")]
pub mod openai;
#[cfg(all(feature = "openai", feature = "anthropic"))]
pub mod providers;
#[cfg(any(feature = "openai", feature = "anthropic"))]
pub mod settings;

// What the providers share. Each uses a part of it, so that one alone leaves some of it unused.
#[cfg(any(feature = "openai", feature = "anthropic"))]
mod address;
#[cfg(any(feature = "openai", feature = "anthropic"))]
#[cfg_attr(not(all(feature = "openai", feature = "anthropic")), allow(dead_code))]
mod conversation;
#[cfg(any(feature = "openai", feature = "anthropic"))]
#[cfg_attr(not(all(feature = "openai", feature = "anthropic")), allow(dead_code))]
mod draft;
#[cfg(any(feature = "openai", feature = "anthropic"))]
mod names;
#[cfg(any(feature = "openai", feature = "anthropic"))]
mod problem;
#[cfg(any(feature = "openai", feature = "anthropic"))]
mod reader;
#[cfg(any(feature = "openai", feature = "anthropic"))]
mod sse;
#[cfg(any(feature = "openai", feature = "anthropic"))]
mod transport;

#[cfg(test)]
#[cfg(all(feature = "openai", feature = "anthropic"))]
mod stream_tests;
#[cfg(test)]
#[cfg(all(feature = "openai", feature = "anthropic"))]
mod testing;

#[cfg(any(feature = "openai", feature = "anthropic"))]
pub use address::BadProvider;
#[cfg(any(feature = "openai", feature = "anthropic"))]
pub use transport::HttpSettings;
