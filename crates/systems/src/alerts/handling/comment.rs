//! Comments on alerts.

use homeport_item::Value;
use homeport_item::expression::{Condition as Expression, Path, Update, UpdateOperand};

use crate::alerts::alert::Comment;
use crate::alerts::types::{AlertId, CommentText, PersonName};
use crate::alerts::{Alerts, AlertsError, schema};

/// Comments of an alert: all of them must fit into its item.
pub const COMMENTS_MAX: usize = 50;

impl Alerts {
    /// Adds a comment to an alert, open or cleared.
    ///
    /// # Errors
    /// When the alert does not exist or has too many comments, or the store fails.
    pub async fn comment(
        &self,
        id: &AlertId,
        by: PersonName,
        text: CommentText,
    ) -> Result<Comment, AlertsError> {
        let at = self.now();
        let comment = Comment { at, by, text };
        let before = UpdateOperand::if_not_exists(schema::COMMENTS, Value::L(Vec::new()));
        let comments = UpdateOperand::list_append(before, Value::L(vec![comment.to_value()]));
        let update = Update::new().set(schema::COMMENTS, comments);
        let max = i64::try_from(COMMENTS_MAX).unwrap_or(i64::MAX);
        let has_room = Expression::not_exists(schema::COMMENTS)
            .or(Path::from(schema::COMMENTS).size().less_than(max));
        let is_stored = Expression::exists(schema::ALL);
        match self.change(id, update, is_stored.and(has_room)).await? {
            Some(_) => Ok(comment),
            None => {
                self.alert(id).await?;
                Err(AlertsError::TooManyComments)
            }
        }
    }
}
