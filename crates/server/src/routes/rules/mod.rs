//! Rules, for operators: made, changed, switched, tried, and what became of them.

mod body;
mod change;
mod look;
mod replay;
mod trial;

use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::state::AppState;

pub use body::RuleBody;
pub use replay::{
    ChangeBody, DifferenceWord, ReplayBody, ReplayTotalsBody, ReplayedBody, WouldWriteBody,
};

pub(super) fn documented() -> OpenApiRouter<AppState> {
    OpenApiRouter::new()
        .routes(routes!(look::list_rules, change::create_rule))
        .routes(routes!(trial::test_statement))
        .routes(routes!(
            look::get_rule,
            change::put_rule,
            change::patch_rule,
            change::delete_rule
        ))
        .routes(routes!(replay::replay_rule))
        .routes(routes!(change::enable_rule))
        .routes(routes!(change::disable_rule))
        .routes(routes!(look::list_rule_versions))
        .routes(routes!(look::get_rule_version))
        .routes(routes!(look::list_rule_errors))
}
