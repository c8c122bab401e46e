// Package postgres keeps names, heads and history in a PostgreSQL database, so that any
// number of replicas on any number of machines share them. It implements what package
// sqlite does: the ports of names, heads and history, and those of what a
// service keeps beside them: uploads, tokens, documents, leases, answers and what a
// collector condemned.
//
// Every method is one statement or one transaction, durable when it returns. [DB.Apply]
// makes a whole promotion one transaction; those that append to the history wait for each
// other on an advisory lock, and nobody else does. What the server undoes so that others
// can go on is done again, a few times. While the server cannot be reached, starts or
// stops, every method fails with CodeUnavailable. A commit whose answer was lost is looked
// up before Apply says anything about it.
//
// All SQL is in .sql files: the schema in the module's migrations folder, queries in
// queries/, from which sqlc makes internal/dbsqlc. Rules about what may be promoted are in
// none of them.
package postgres

// The generator is pinned in a module of its own, so that nothing else is.
//go:generate go tool -modfile=../../tools/sqlc/go.mod sqlc generate
