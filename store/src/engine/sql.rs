//! How the store speaks to its database: connections, statements, rows and the values in their columns.
//!
//! A thin layer: a statement goes to SQLite as it is written. A type of our own is stored in a column by [`ToSql`] and
//! read back by [`FromSql`]; `rows` has those of the stored names. Only the engine's files use the library directly.
#![allow(
    clippy::needless_pass_by_value,
    reason = "parameters are written where a statement is called, as the library takes them"
)]

use super::work::note_statement;
pub(crate) use rusqlite::types::{FromSqlError, FromSqlResult, ToSqlOutput, Type, ValueRef};
pub(crate) use rusqlite::{Error, OptionalExtension, Result, StatementStatus};

/// A value that can be a statement's parameter.
pub(crate) trait ToSql {
    /// The value as SQLite takes it.
    fn to_sql(&self) -> Result<ToSqlOutput<'_>>;
}

/// A value that can be read from a column.
pub(crate) trait FromSql: Sized {
    /// Decodes the value that SQLite gives.
    fn column_result(value: ValueRef<'_>) -> FromSqlResult<Self>;
}

macro_rules! value_of_the_library {
    ($($ty:ty),*) => {$(
        impl ToSql for $ty {
            fn to_sql(&self) -> Result<ToSqlOutput<'_>> {
                rusqlite::ToSql::to_sql(self)
            }
        }
        impl FromSql for $ty {
            fn column_result(value: ValueRef<'_>) -> FromSqlResult<Self> {
                rusqlite::types::FromSql::column_result(value)
            }
        }
    )*};
}

value_of_the_library!(
    bool,
    i16,
    i32,
    i64,
    u8,
    u16,
    u32,
    f64,
    String,
    Vec<u8>,
    [u8; 16],
    [u8; 32]
);

impl ToSql for str {
    fn to_sql(&self) -> Result<ToSqlOutput<'_>> {
        rusqlite::ToSql::to_sql(self)
    }
}

impl ToSql for [u8] {
    fn to_sql(&self) -> Result<ToSqlOutput<'_>> {
        rusqlite::ToSql::to_sql(self)
    }
}

impl<T: ToSql + ?Sized> ToSql for &T {
    fn to_sql(&self) -> Result<ToSqlOutput<'_>> {
        (**self).to_sql()
    }
}

impl<T: ToSql> ToSql for Option<T> {
    fn to_sql(&self) -> Result<ToSqlOutput<'_>> {
        match self {
            Some(value) => value.to_sql(),
            None => Ok(ToSqlOutput::Borrowed(ValueRef::Null)),
        }
    }
}

impl<T: FromSql> FromSql for Option<T> {
    fn column_result(value: ValueRef<'_>) -> FromSqlResult<Self> {
        match value {
            ValueRef::Null => Ok(None),
            value => T::column_result(value).map(Some),
        }
    }
}

/// The values of a statement's parameters, in order.
pub(crate) trait Params {
    /// All of them.
    fn values(&self) -> Vec<&dyn ToSql>;
}

// Lets `[]` be passed: an empty array needs an element type, too.
impl Params for [&dyn ToSql; 0] {
    fn values(&self) -> Vec<&dyn ToSql> {
        Vec::new()
    }
}

impl Params for () {
    fn values(&self) -> Vec<&dyn ToSql> {
        Vec::new()
    }
}

impl Params for &[&dyn ToSql] {
    fn values(&self) -> Vec<&dyn ToSql> {
        self.to_vec()
    }
}

macro_rules! params_of_tuple {
    ($($name:ident $at:tt),*) => {
        impl<$($name: ToSql),*> Params for ($($name,)*) {
            fn values(&self) -> Vec<&dyn ToSql> {
                vec![$(&self.$at),*]
            }
        }
    };
}

params_of_tuple!(A 0);
params_of_tuple!(A 0, B 1);
params_of_tuple!(A 0, B 1, C 2);
params_of_tuple!(A 0, B 1, C 2, D 3);
params_of_tuple!(A 0, B 1, C 2, D 3, E 4);
params_of_tuple!(A 0, B 1, C 2, D 3, E 4, F 5);
params_of_tuple!(A 0, B 1, C 2, D 3, E 4, F 5, G 6);
params_of_tuple!(A 0, B 1, C 2, D 3, E 4, F 5, G 6, H 7);
params_of_tuple!(A 0, B 1, C 2, D 3, E 4, F 5, G 6, H 7, I 8);
params_of_tuple!(A 0, B 1, C 2, D 3, E 4, F 5, G 6, H 7, I 8, J 9);
params_of_tuple!(A 0, B 1, C 2, D 3, E 4, F 5, G 6, H 7, I 8, J 9, K 10);
params_of_tuple!(A 0, B 1, C 2, D 3, E 4, F 5, G 6, H 7, I 8, J 9, K 10, L 11);
params_of_tuple!(A 0, B 1, C 2, D 3, E 4, F 5, G 6, H 7, I 8, J 9, K 10, L 11, M 12);

macro_rules! params_of_array {
    ($($n:literal)*) => {$(
        impl<T: ToSql> Params for [T; $n] {
            fn values(&self) -> Vec<&dyn ToSql> {
                self.iter().map(|value| value as &dyn ToSql).collect()
            }
        }
    )*};
}

params_of_array!(1 2 3 4 5 6 7 8);

/// The parameters of a statement, of any types: `params![chat, at_ms]`.
macro_rules! params {
    ($($value:expr),* $(,)?) => {
        &[$(&$value as &dyn $crate::engine::sql::ToSql),*] as &[&dyn $crate::engine::sql::ToSql]
    };
}
pub(crate) use params;

/// A connection, inside a transaction that the engine began.
#[derive(Clone, Copy)]
pub(crate) struct Connection<'c>(&'c rusqlite::Connection);

impl<'c> Connection<'c> {
    /// Wraps a connection of the library.
    pub(crate) fn of(connection: &'c rusqlite::Connection) -> Self {
        Self(connection)
    }

    /// The library's connection.
    #[cfg(test)]
    pub(crate) fn raw(&self) -> &'c rusqlite::Connection {
        self.0
    }

    /// The database's file; `None` for one in memory.
    pub(crate) fn path(&self) -> Option<&'c str> {
        self.0.path()
    }

    /// A statement that is kept for the next call with the same text.
    pub(crate) fn prepare_cached(&self, sql: &str) -> Result<Statement<'c>> {
        self.0.prepare_cached(sql).map(Statement)
    }

    /// Executes a statement; how many rows it changed.
    pub(crate) fn execute(&self, sql: &str, params: impl Params) -> Result<usize> {
        note_statement();
        self.0.execute(sql, bound(&params)?)
    }

    /// Executes several statements without parameters.
    pub(crate) fn execute_batch(&self, sql: &str) -> Result<()> {
        note_statement();
        self.0.execute_batch(sql)
    }

    /// The first row of a query.
    pub(crate) fn query_row<T>(
        &self,
        sql: &str,
        params: impl Params,
        read: impl FnOnce(&Row<'_>) -> Result<T>,
    ) -> Result<T> {
        note_statement();
        self.0
            .query_row(sql, bound(&params)?, |row| read(&Row(row)))
    }

    /// How many rows this connection has changed since it was opened.
    pub(crate) fn total_changes(&self) -> u64 {
        self.0.total_changes()
    }

    /// The row id of the newest insertion.
    pub(crate) fn last_insert_rowid(&self) -> i64 {
        self.0.last_insert_rowid()
    }
}

fn bound<'p>(params: &'p impl Params) -> Result<rusqlite::ParamsFromIter<Vec<ToSqlOutput<'p>>>> {
    let values = params.values().into_iter().map(ToSql::to_sql);
    values
        .collect::<Result<Vec<_>>>()
        .map(rusqlite::params_from_iter)
}

/// A prepared statement.
pub(crate) struct Statement<'c>(rusqlite::CachedStatement<'c>);

impl Statement<'_> {
    /// Executes it; how many rows it changed.
    pub(crate) fn execute(&mut self, params: impl Params) -> Result<usize> {
        note_statement();
        self.0.execute(bound(&params)?)
    }

    /// Its first row.
    pub(crate) fn query_row<T>(
        &mut self,
        params: impl Params,
        read: impl FnOnce(&Row<'_>) -> Result<T>,
    ) -> Result<T> {
        note_statement();
        self.0.query_row(bound(&params)?, |row| read(&Row(row)))
    }

    /// Its rows, one by one.
    pub(crate) fn query(&mut self, params: impl Params) -> Result<Rows<'_>> {
        note_statement();
        self.0.query(bound(&params)?).map(Rows)
    }

    /// Its rows, each decoded by a function.
    pub(crate) fn query_map<T, F: FnMut(&Row<'_>) -> Result<T>>(
        &mut self,
        params: impl Params,
        read: F,
    ) -> Result<MappedRows<'_, F>> {
        let rows = self.query(params)?;
        Ok(MappedRows { rows, read })
    }

    /// One of SQLite's counters for this statement.
    pub(crate) fn get_status(&self, status: StatementStatus) -> i32 {
        self.0.get_status(status)
    }

    /// Reads such a counter and sets it to zero.
    pub(crate) fn reset_status(&self, status: StatementStatus) -> i32 {
        self.0.reset_status(status)
    }
}

/// The rows of a query.
pub(crate) struct Rows<'s>(rusqlite::Rows<'s>);

impl Rows<'_> {
    /// The next row.
    pub(crate) fn next(&mut self) -> Result<Option<Row<'_>>> {
        self.0.next().map(|row| row.map(Row))
    }
}

/// The rows of a query, each decoded by a function.
pub(crate) struct MappedRows<'s, F> {
    rows: Rows<'s>,
    read: F,
}

impl<T, F: FnMut(&Row<'_>) -> Result<T>> Iterator for MappedRows<'_, F> {
    type Item = Result<T>;

    fn next(&mut self) -> Option<Self::Item> {
        match self.rows.next() {
            Ok(Some(row)) => Some((self.read)(&row)),
            Ok(None) => None,
            Err(error) => Some(Err(error)),
        }
    }
}

/// A row of a query.
pub(crate) struct Row<'r>(&'r rusqlite::Row<'r>);

impl Row<'_> {
    /// A column, by its name or its place.
    pub(crate) fn get<I: rusqlite::RowIndex, T: FromSql>(&self, column: I) -> Result<T> {
        self.0.get::<I, NamedValue<T>>(column).map(|read| read.0)
    }

    /// A column as SQLite holds it.
    pub(crate) fn get_ref<I: rusqlite::RowIndex>(&self, column: I) -> Result<ValueRef<'_>> {
        self.0.get_ref(column)
    }

    /// The error of a column whose text can't be decoded.
    pub(crate) fn undecodable(
        &self,
        column: &str,
        cause: impl Into<Box<dyn std::error::Error + Send + Sync>>,
    ) -> Error {
        match self.0.as_ref().column_index(column) {
            Ok(index) => Error::FromSqlConversionFailure(index, Type::Text, cause.into()),
            Err(error) => error,
        }
    }
}

/// Passes [`FromSql`] through the library, so that its errors name the column of a value that can't be read.
struct NamedValue<T>(T);

impl<T: FromSql> rusqlite::types::FromSql for NamedValue<T> {
    fn column_result(value: ValueRef<'_>) -> FromSqlResult<Self> {
        T::column_result(value).map(Self)
    }
}
