// Package sqlite keeps names, heads and history in one SQLite file: the default
// implementation of every port that a database fills, such as [registry.Refs] and
// [registry.Catalog].
//
// The file is in WAL mode with synchronous=FULL, so that what a method has returned
// from survives a power failure; the states of uploads alone need not, and do not wait
// for the disk. Writers take the write lock at the beginning of their transaction and
// wait for each other, in this process and in others; readers never wait. What
// clients push at the same time shares a commit. [DB.Apply] makes a whole promotion one
// such transaction.
//
// All SQL is in .sql files: the schema in the module's migrations folder, queries in
// queries/, from which sqlc makes internal/dbsqlc. Rules about what may be promoted are in
// none of them.
package sqlite

// The generator is pinned in a module of its own, so that nothing else is.
//go:generate go tool -modfile=../../tools/sqlc/go.mod sqlc generate
