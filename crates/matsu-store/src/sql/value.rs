//! Parameters, the same for both dialects.

use std::error::Error;

use bytes::BytesMut;
use matsu_core::clock::Timestamp;
use matsu_core::id::{
    AgentId, AuthItemId, ChatId, ClaimId, DeliveryId, EdgeId, EvaluationId, FeedbackId, FiringId, FragmentId, JobId,
    MessageId, NodeId, NoticeId, NotificationId, PageId, ProjectId, RuleId, RunId, SampleId, ScheduleId, SessionId,
    SubscriptionId, TaskId, TokenId, WebhookId,
};
use matsu_core::principal::Principal;
use rusqlite::types::{ToSqlOutput, Value as SqliteValue, ValueRef};
use tokio_postgres::types::{IsNull, ToSql, Type, to_sql_checked};

/// One parameter. A list is an array on PostgreSQL and a JSON array on SQLite.
#[derive(Clone, Debug)]
pub enum Value<'a> {
    Null,
    Int(i64),
    Text(&'a str),
    /// As `Text`, for what is sent later than it is said.
    Owned(String),
    List(Vec<&'a str>),
    /// Columns of several rows, for PostgreSQL's `unnest`.
    Texts(Vec<Option<&'a str>>),
    OwnedTexts(Vec<Option<String>>),
    Ints(Vec<Option<i64>>),
}

impl Value<'_> {
    /// The same value, kept for later. `None` for a list, which is always sent at once.
    pub fn kept(&self) -> Option<Value<'static>> {
        match self {
            Self::Null => Some(Value::Null),
            Self::Int(number) => Some(Value::Int(*number)),
            Self::Text(text) => Some(Value::Owned((*text).to_owned())),
            Self::Owned(text) => Some(Value::Owned(text.clone())),
            Self::Ints(numbers) => Some(Value::Ints(numbers.clone())),
            Self::Texts(texts) => Some(Value::OwnedTexts(texts.iter().map(|text| text.map(str::to_owned)).collect())),
            Self::OwnedTexts(texts) => Some(Value::OwnedTexts(texts.clone())),
            Self::List(_) => None,
        }
    }
}

impl<'a> Value<'a> {
    /// How many rows a column has.
    fn length(&self) -> usize {
        match self {
            Self::Texts(texts) => texts.len(),
            Self::Ints(numbers) => numbers.len(),
            _ => 0,
        }
    }

    /// The value of one row of a column.
    fn at(&self, row: usize) -> Self {
        match self {
            Self::Texts(texts) => texts.get(row).copied().flatten().into(),
            Self::Ints(numbers) => numbers.get(row).copied().flatten().into(),
            _ => Self::Null,
        }
    }
}

/// The rows of columns that are equally long.
pub fn rows<'a>(columns: &[Value<'a>]) -> impl ExactSizeIterator<Item = impl Iterator<Item = Value<'a>>> {
    let length = columns.first().map_or(0, Value::length);
    (0..length).map(move |at| columns.iter().map(move |column| column.at(at)))
}

/// Parameters in their order: `params![id, now, None::<&str>]`.
macro_rules! params {
    ($($value:expr),* $(,)?) => { &[$($crate::sql::Value::from($value)),*][..] };
}
pub(crate) use params;

impl From<i64> for Value<'_> {
    fn from(value: i64) -> Self {
        Self::Int(value)
    }
}

impl From<u32> for Value<'_> {
    fn from(value: u32) -> Self {
        Self::Int(i64::from(value))
    }
}

impl From<Timestamp> for Value<'_> {
    fn from(value: Timestamp) -> Self {
        Self::Int(value.as_millis())
    }
}

impl<'a> From<&'a str> for Value<'a> {
    fn from(value: &'a str) -> Self {
        Self::Text(value)
    }
}

impl<'a> From<&'a String> for Value<'a> {
    fn from(value: &'a String) -> Self {
        Self::Text(value)
    }
}

impl<'a> From<Vec<&'a str>> for Value<'a> {
    fn from(value: Vec<&'a str>) -> Self {
        Self::List(value)
    }
}

impl<'a, T> From<Option<T>> for Value<'a>
where
    Value<'a>: From<T>,
{
    fn from(value: Option<T>) -> Self {
        value.map_or(Self::Null, Self::from)
    }
}

macro_rules! from_text_newtypes {
    ($($name:ident),*) => {$(
        impl<'a> From<&'a $name> for Value<'a> {
            fn from(value: &'a $name) -> Self { Self::Text(value.as_str()) }
        }
    )*};
}
from_text_newtypes!(
    TaskId,
    JobId,
    NodeId,
    TokenId,
    Principal,
    PageId,
    FragmentId,
    ClaimId,
    EdgeId,
    AuthItemId,
    RuleId,
    FeedbackId,
    SampleId,
    EvaluationId,
    ProjectId,
    AgentId,
    SessionId,
    RunId,
    ChatId,
    MessageId,
    NotificationId,
    NoticeId,
    ScheduleId,
    FiringId,
    WebhookId,
    DeliveryId,
    SubscriptionId
);

/// SQLite runs a statement once per row.
const NO_COLUMNS: &str = "columns of several rows are PostgreSQL's";

impl rusqlite::ToSql for Value<'_> {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(match self {
            Self::Null => ToSqlOutput::Owned(SqliteValue::Null),
            Self::Int(number) => ToSqlOutput::Owned(SqliteValue::Integer(*number)),
            Self::Text(text) => ToSqlOutput::Borrowed(ValueRef::Text(text.as_bytes())),
            Self::Owned(text) => ToSqlOutput::Borrowed(ValueRef::Text(text.as_bytes())),
            Self::List(items) => {
                let json = serde_json::to_string(items)
                    .map_err(|error| rusqlite::Error::ToSqlConversionFailure(Box::new(error)))?;
                ToSqlOutput::Owned(SqliteValue::Text(json))
            }
            Self::Texts(_) | Self::OwnedTexts(_) | Self::Ints(_) => {
                return Err(rusqlite::Error::ToSqlConversionFailure(NO_COLUMNS.into()));
            }
        })
    }
}

impl ToSql for Value<'_> {
    fn to_sql(&self, ty: &Type, out: &mut BytesMut) -> Result<IsNull, Box<dyn Error + Sync + Send>> {
        match self {
            Self::Null => Ok(IsNull::Yes),
            Self::Int(number) if *ty == Type::INT4 => i32::try_from(*number)?.to_sql(ty, out),
            Self::Int(number) => number.to_sql(ty, out),
            Self::Text(text) => text.to_sql(ty, out),
            Self::Owned(text) => text.to_sql(ty, out),
            Self::List(items) => items.to_sql(ty, out),
            Self::Texts(texts) => texts.to_sql(ty, out),
            Self::OwnedTexts(texts) => texts.to_sql(ty, out),
            Self::Ints(numbers) => numbers.to_sql(ty, out),
        }
    }

    fn accepts(ty: &Type) -> bool {
        matches!(*ty, Type::INT4 | Type::INT8 | Type::TEXT | Type::VARCHAR | Type::TEXT_ARRAY | Type::INT8_ARRAY)
    }

    to_sql_checked!();
}
