//! A transition whose type is not known any more. The code that runs, commits and repeats transitions is then compiled
//! once, and not once for each of the hundreds of requests: that was a quarter of the binary.

use std::any::Any;
use std::pin::Pin;

use matsu_core::ports::store::{Request, StoreError};

use super::{Transition, Tx, internal};

/// The output of the transition inside, whose type only the caller knows.
pub type AnyOutput = Box<dyn Any + Send>;

pub struct AnyTransition(Box<dyn Erased>);

impl AnyTransition {
    pub fn new(transition: impl Transition) -> Self {
        Self(Box::new(transition))
    }

    /// The output of a transition, by the type that it was made from.
    pub fn output<T: Transition>(output: AnyOutput) -> Result<T::Output, StoreError> {
        output.downcast().map(|output| *output).map_err(|_| internal("a transition gave another type than its own"))
    }
}

impl Request for AnyTransition {
    type Output = AnyOutput;
}

impl Transition for AnyTransition {
    fn is_quick(&self) -> bool {
        self.0.is_quick()
    }

    fn is_single_statement(&self) -> bool {
        self.0.is_single_statement()
    }

    fn is_bulk(&self) -> bool {
        self.0.is_bulk()
    }

    async fn run(&self, tx: &mut Tx<'_>) -> Result<AnyOutput, StoreError> {
        self.0.run(tx).await
    }
}

trait Erased: Send + Sync {
    fn is_quick(&self) -> bool;
    fn is_single_statement(&self) -> bool;
    fn is_bulk(&self) -> bool;
    fn run<'a>(&'a self, tx: &'a mut Tx<'_>) -> Running<'a>;
}

type Running<'a> = Pin<Box<dyn Future<Output = Result<AnyOutput, StoreError>> + Send + 'a>>;

impl<T: Transition> Erased for T {
    fn is_quick(&self) -> bool {
        Transition::is_quick(self)
    }

    fn is_single_statement(&self) -> bool {
        Transition::is_single_statement(self)
    }

    fn is_bulk(&self) -> bool {
        Transition::is_bulk(self)
    }

    fn run<'a>(&'a self, tx: &'a mut Tx<'_>) -> Running<'a> {
        Box::pin(async move { Transition::run(self, tx).await.map(|output| Box::new(output) as AnyOutput) })
    }
}
