// Package postgres stores names, heads and history in a PostgreSQL database that any number of
// replicas on any number of machines share. It implements the same ports as package sqlite:
// names, heads, history, uploads, tokens, documents, leases, saved answers and marks of the
// garbage collector.
//
// Every method is one statement or one transaction, durable when it returns. [DB.Apply] is one
// transaction for a whole promotion. Transactions that append to the history wait for each
// other on an advisory lock; others do not wait. A transaction that the server aborts because
// of a conflict is retried a few times. While the server is unreachable, starting or stopping,
// every method fails with CodeUnavailable. If the response to a commit is lost, Apply checks
// whether it was made.
//
// All SQL is in .sql files: the schema in the module's migrations folder, the queries in
// queries/, from which sqlc generates internal/dbsqlc. They contain no rules about promotions.
package postgres

// The generator has its own module, so that it does not pin other dependencies.
//go:generate go tool -modfile=../../tools/sqlc/go.mod sqlc generate
