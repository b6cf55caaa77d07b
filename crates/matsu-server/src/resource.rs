//! A REST resource: each route is registered with its OpenAPI operation, so that the document that is served cannot
//! describe other routes than those that answer.

use axum::Router;
use axum::handler::Handler;
use axum::middleware::from_fn;
use axum::routing::{MethodFilter, on};
use schemars::{JsonSchema, Schema, SchemaGenerator};

use crate::app::App;
use crate::auth::caller::{admins_only, writers_only};

/// Makes the schema of one type.
pub type SchemaOf = fn(&mut SchemaGenerator) -> Schema;

/// Routes below `/api/v1`, each with what is said about it.
#[derive(Default)]
pub struct Resource {
    router: Router<App>,
    operations: Vec<Operation>,
}

/// One method of one path.
#[derive(Clone, Copy)]
pub struct Operation {
    pub method: &'static str,
    pub path: &'static str,
    pub doc: OperationDoc,
}

/// What the document says about an operation.
#[derive(Clone, Copy)]
pub struct OperationDoc {
    /// Unique among all operations; clients are generated from it.
    pub id: &'static str,
    pub summary: &'static str,
    pub query: Option<SchemaOf>,
    pub body: Option<SchemaOf>,
    pub answer: ResponseShape,
    pub status: u16,
    pub is_open: bool,
    pub who: Who,
}

/// Which roles an operation is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Who {
    Everybody,
    /// Not viewers.
    Writers,
    Admins,
}

/// What comes back when all is well.
#[derive(Clone, Copy)]
pub enum ResponseShape {
    Nothing,
    Json(SchemaOf),
    /// Server-sent events; the schema is that of one event's data.
    Events(SchemaOf),
}

/// An operation that answers nothing yet; say what it takes and gives with the methods below.
#[must_use]
pub fn operation(id: &'static str, summary: &'static str) -> OperationDoc {
    OperationDoc {
        id,
        summary,
        query: None,
        body: None,
        answer: ResponseShape::Nothing,
        status: 204,
        is_open: false,
        who: Who::Writers,
    }
}

impl OperationDoc {
    #[must_use]
    pub fn query<T: JsonSchema>(self) -> Self {
        Self { query: Some(schema_of::<T>), ..self }
    }

    #[must_use]
    pub fn body<T: JsonSchema>(self) -> Self {
        Self { body: Some(schema_of::<T>), ..self }
    }

    /// JSON with status 200.
    #[must_use]
    pub fn answers<T: JsonSchema>(self) -> Self {
        Self { answer: ResponseShape::Json(schema_of::<T>), status: 200, ..self }
    }

    /// JSON with status 201.
    #[must_use]
    pub fn creates<T: JsonSchema>(self) -> Self {
        Self { status: 201, ..self.answers::<T>() }
    }

    #[must_use]
    pub fn streams<T: JsonSchema>(self) -> Self {
        Self { answer: ResponseShape::Events(schema_of::<T>), status: 200, ..self }
    }

    /// Answers requests without a token too.
    #[must_use]
    pub fn open(self) -> Self {
        Self { is_open: true, who: Who::Everybody, ..self }
    }

    /// What holds for the whole installation.
    #[must_use]
    pub fn for_admins(self) -> Self {
        Self { who: Who::Admins, ..self }
    }

    /// It is no GET, and yet changes nothing that others see.
    #[must_use]
    pub fn for_viewers_too(self) -> Self {
        Self { who: Who::Everybody, ..self }
    }
}

fn schema_of<T: JsonSchema>(generator: &mut SchemaGenerator) -> Schema {
    generator.subschema_for::<T>()
}

impl Resource {
    #[must_use]
    pub fn get<H: Handler<T, App>, T: 'static>(self, path: &'static str, doc: OperationDoc, handler: H) -> Self {
        // Reading is for every role unless the route names another.
        let who = if doc.who == Who::Writers { Who::Everybody } else { doc.who };
        self.on(MethodFilter::GET, "get", path, OperationDoc { who, ..doc }, handler)
    }

    #[must_use]
    pub fn post<H: Handler<T, App>, T: 'static>(self, path: &'static str, doc: OperationDoc, handler: H) -> Self {
        self.on(MethodFilter::POST, "post", path, doc, handler)
    }

    #[must_use]
    pub fn patch<H: Handler<T, App>, T: 'static>(self, path: &'static str, doc: OperationDoc, handler: H) -> Self {
        self.on(MethodFilter::PATCH, "patch", path, doc, handler)
    }

    #[must_use]
    pub fn delete<H: Handler<T, App>, T: 'static>(self, path: &'static str, doc: OperationDoc, handler: H) -> Self {
        self.on(MethodFilter::DELETE, "delete", path, doc, handler)
    }

    fn on<H: Handler<T, App>, T: 'static>(
        mut self,
        filter: MethodFilter,
        method: &'static str,
        path: &'static str,
        doc: OperationDoc,
        handler: H,
    ) -> Self {
        let route = on(filter, handler);
        let route = match doc.who {
            Who::Everybody => route,
            Who::Writers => route.layer(from_fn(writers_only)),
            Who::Admins => route.layer(from_fn(admins_only)),
        };
        self.router = self.router.route(path, route);
        self.operations.push(Operation { method, path, doc });
        self
    }

    #[must_use]
    pub fn merge(mut self, other: Self) -> Self {
        self.router = self.router.merge(other.router);
        self.operations.extend(other.operations);
        self
    }

    pub fn into_router(self) -> Router<App> {
        self.router
    }

    pub fn operations(&self) -> &[Operation] {
        &self.operations
    }
}
