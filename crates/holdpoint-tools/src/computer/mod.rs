//! Actions at a screen. A call carries a batch of them; it is approved, or not, as a whole.

mod action;

#[cfg(test)]
mod tests;

use async_trait::async_trait;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use holdpoint_core::json::CanonicalJson;
use holdpoint_core::message::{Content, Part, Source};
use holdpoint_runtime::ports::tool::{RunTool, Tool, ToolBuilder, ToolContext, ToolFailure, ToolShape};

pub use action::{Button, ComputerAction, Point, read_actions};

/// Makes computer tools.
pub struct ComputerTool;

impl ComputerTool {
    /// How many actions one call may have.
    pub const ACTIONS_MAX: usize = 64;

    /// A tool named `computer`, which acts at this screen.
    ///
    /// Its arguments are `{"actions": [{"type": "click", …}, …]}`, or `{"action": {…}}` for one, as older models write
    /// it. The actions run in order; then a screenshot is taken, which is the result. A predicate is asked once for
    /// each action, and any one of them holds the whole call.
    pub fn builder(computer: impl Computer) -> ToolBuilder {
        Self::named("computer", computer)
    }

    /// The same tool under its older name, `computer_use_preview`. Decisions and rules for one hold for the other.
    pub fn preview_builder(computer: impl Computer) -> ToolBuilder {
        Self::named("computer_use_preview", computer)
    }

    fn named(name: &str, computer: impl Computer) -> ToolBuilder {
        Tool::builder(name)
            .description("Acts at a screen with mouse and keyboard, and gives back a picture of it.")
            .schema(action::schema())
            .shape(ToolShape::Computer)
            .runner(ComputerRunner(computer))
    }
}

/// A screen with mouse and keyboard. The application brings one: a browser, a virtual machine, a phone.
///
/// `keys` are held down during the action, such as `SHIFT`. Each may fail with words for the model.
#[async_trait]
pub trait Computer: Send + Sync + 'static {
    /// What the screen shows.
    async fn screenshot(&self) -> Result<Screenshot, ToolFailure>;

    /// Clicks once.
    async fn click(&self, at: Point, button: Button, keys: &[String]) -> Result<(), ToolFailure>;

    /// Clicks twice, with the left button.
    async fn double_click(&self, at: Point, keys: &[String]) -> Result<(), ToolFailure>;

    /// Moves the mouse.
    async fn move_to(&self, at: Point, keys: &[String]) -> Result<(), ToolFailure>;

    /// Moves the mouse along a path of at least two points, with the left button down.
    async fn drag(&self, path: &[Point], keys: &[String]) -> Result<(), ToolFailure>;

    /// Turns the wheel at a point: so far to the right and down, in pixels.
    async fn scroll(&self, at: Point, by: Point, keys: &[String]) -> Result<(), ToolFailure>;

    /// Types a text.
    async fn type_text(&self, text: &str) -> Result<(), ToolFailure>;

    /// Presses these keys together.
    async fn keypress(&self, keys: &[String]) -> Result<(), ToolFailure>;

    /// Gives the screen time to settle.
    async fn wait(&self) -> Result<(), ToolFailure>;
}

/// A picture of the screen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Screenshot {
    /// Such as `image/png`.
    pub media_type: String,
    /// The picture.
    pub bytes: Vec<u8>,
}

struct ComputerRunner<C>(C);

#[async_trait]
impl<C: Computer> RunTool for ComputerRunner<C> {
    async fn run(&self, context: ToolContext, arguments: CanonicalJson) -> Result<Content, ToolFailure> {
        let actions = action::check(arguments.decode()).map_err(ToolFailure)?;
        for (done, action) in actions.iter().enumerate() {
            let told = |why: &str| {
                let (name, all) = (action.name(), actions.len());
                ToolFailure::new(format_args!("{name}: {why} ({done} of {all} actions were done)"))
            };
            if context.cancelled.is_cancelled() {
                return Err(told("the run was cancelled"));
            }
            self.act(action).await.map_err(|failure| told(&failure.0))?;
        }
        let Screenshot { media_type, bytes } = self.0.screenshot().await?;
        Ok(Content::Parts(vec![Part::Image { media_type, source: Source::Base64(STANDARD.encode(bytes)) }]))
    }
}

impl<C: Computer> ComputerRunner<C> {
    async fn act(&self, action: &ComputerAction) -> Result<(), ToolFailure> {
        let at = |x: &i32, y: &i32| Point { x: *x, y: *y };
        match action {
            // One is taken after the last action in any case.
            ComputerAction::Screenshot {} => Ok(()),
            ComputerAction::Click { x, y, button, keys } => self.0.click(at(x, y), *button, keys).await,
            ComputerAction::DoubleClick { x, y, keys } => self.0.double_click(at(x, y), keys).await,
            ComputerAction::Move { x, y, keys } => self.0.move_to(at(x, y), keys).await,
            ComputerAction::Drag { path, keys } => self.0.drag(path, keys).await,
            ComputerAction::Scroll { x, y, scroll_x, scroll_y, keys } => {
                self.0.scroll(at(x, y), at(scroll_x, scroll_y), keys).await
            }
            ComputerAction::Type { text } => self.0.type_text(text).await,
            ComputerAction::Keypress { keys } => self.0.keypress(keys).await,
            ComputerAction::Wait {} => self.0.wait().await,
        }
    }
}
