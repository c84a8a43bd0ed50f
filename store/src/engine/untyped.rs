//! Jobs with their types erased, so that the path to a connection is compiled once and not once for each of several
//! hundred jobs.

use std::any::Any;
use std::marker::PhantomData;
use std::pin::Pin;
use std::task::{Context, Poll};

use futures_util::future::BoxFuture;

use crate::StoreError;
use crate::engine::sql;

/// The result of a job.
pub(crate) type UntypedResult = Result<Box<dyn Any + Send>, StoreError>;
/// A job, called with a connection.
pub(crate) type UntypedJob = Box<dyn FnOnce(&sql::Connection) -> UntypedResult + Send>;

/// Erases the result type of a job; [`Typed`] restores it.
pub(crate) fn untyped<T: Send + 'static>(
    job: impl FnOnce(&sql::Connection) -> Result<T, StoreError> + Send + 'static,
) -> UntypedJob {
    Box::new(move |connection| Ok(Box::new(job(connection)?)))
}

/// The result of a job, as the type that its caller knows.
pub(crate) struct Typed<'a, T> {
    working: BoxFuture<'a, UntypedResult>,
    result: PhantomData<fn() -> T>,
}

impl<'a, T> Typed<'a, T> {
    /// Wraps `working`, whose result must be a `T`.
    pub(crate) fn of(working: BoxFuture<'a, UntypedResult>) -> Self {
        Self {
            working,
            result: PhantomData,
        }
    }
}

impl<T: 'static> Future for Typed<'_, T> {
    type Output = Result<T, StoreError>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let done = std::task::ready!(self.working.as_mut().poll(context));
        Poll::Ready(done.map(|result| {
            *result
                .downcast()
                .expect("a job gives what its caller asked for")
        }))
    }
}
