//! `/v1/rules`: operators manage, test and replay rules.

mod body;
mod read;
mod replay;
mod test_statement;
mod write;

use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::state::AppState;

pub use body::RuleBody;
pub use replay::{
    ChangeBody, DifferenceKind, ReplayBody, ReplayTotalsBody, ReplayedBody, WouldWriteBody,
};

pub(super) fn documented() -> OpenApiRouter<AppState> {
    OpenApiRouter::new()
        .routes(routes!(read::list_rules, write::create_rule))
        .routes(routes!(test_statement::test_statement))
        .routes(routes!(
            read::get_rule,
            write::put_rule,
            write::patch_rule,
            write::delete_rule
        ))
        .routes(routes!(replay::replay_rule))
        .routes(routes!(write::enable_rule))
        .routes(routes!(write::disable_rule))
        .routes(routes!(read::list_rule_versions))
        .routes(routes!(read::get_rule_version))
        .routes(routes!(read::list_rule_errors))
}
