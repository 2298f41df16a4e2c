//! Rejects query parameters that a route does not have. The OpenAPI document says which ones it has, so that a
//! parameter that is read is also documented.

use std::collections::HashMap;
use std::sync::Arc;

use axum::extract::{MatchedPath, Query, Request, State};
use axum::http::Method;
use axum::middleware::Next;
use axum::response::Response;
use homeport_systems::unknown_name::UnknownName;
use utoipa::openapi::path::{Operation, ParameterIn, PathItem};
use utoipa::openapi::{OpenApi, RefOr};

use crate::problem::Problem;

/// The names of the query parameters of all documented operations.
#[derive(Debug)]
pub(crate) struct KnownParameters(HashMap<String, PathParameters>);

type PathParameters = Vec<(Method, Vec<String>)>;

impl KnownParameters {
    pub(crate) fn of(document: &OpenApi) -> Self {
        let paths = document.paths.paths.iter();
        Self(
            paths
                .map(|(path, item)| (path.clone(), path_parameters(item)))
                .collect(),
        )
    }

    /// The parameters of an operation; `None` if it is not documented.
    fn get(&self, route: &str, method: &Method) -> Option<&[String]> {
        // The document has no wildcards, and the router answers HEAD like GET.
        let method = match *method {
            Method::HEAD => &Method::GET,
            _ => method,
        };
        let operations = self.0.get(&route.replace("{*", "{"))?;
        let (_, names) = operations.iter().find(|(known, _)| known == method)?;
        Some(names)
    }
}

fn path_parameters(item: &PathItem) -> PathParameters {
    [
        (Method::GET, &item.get),
        (Method::PUT, &item.put),
        (Method::POST, &item.post),
        (Method::PATCH, &item.patch),
        (Method::DELETE, &item.delete),
    ]
    .into_iter()
    .filter_map(|(method, operation)| Some((method, query_parameters(operation.as_ref()?))))
    .collect()
}

fn query_parameters(operation: &Operation) -> Vec<String> {
    let parameters = operation.parameters.iter().flatten();
    parameters
        .filter_map(|parameter| match parameter {
            RefOr::T(parameter) if parameter.parameter_in == ParameterIn::Query => {
                Some(parameter.name.clone())
            }
            _ => None,
        })
        .collect()
}

/// The layer of all routes.
pub(crate) async fn reject_unknown_parameters(
    State(known): State<Arc<KnownParameters>>,
    request: Request,
    next: Next,
) -> Result<Response, Problem> {
    if request.uri().query().is_some_and(|query| !query.is_empty())
        && let Some(route) = request.extensions().get::<MatchedPath>()
        && let Some(known) = known.get(route.as_str(), request.method())
    {
        let Query(sent) = Query::<Vec<(String, String)>>::try_from_uri(request.uri())
            .map_err(|error| Problem::invalid(error.body_text()))?;
        if let Some((name, _)) = sent.iter().find(|(name, _)| !known.contains(name)) {
            let known = known.iter().map(String::as_str);
            let unknown = UnknownName::new("query parameter", name, known);
            return Err(Problem::invalid(unknown.to_string()));
        }
    }
    Ok(next.run(request).await)
}
