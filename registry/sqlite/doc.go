// Package sqlite stores names, heads and history in one SQLite file. It is the default
// implementation of every database port, such as [storage.RepositoryRecords] and [storage.Catalog].
//
// The file is in WAL mode with synchronous=FULL, so that the result of a method survives a
// power failure. The states of uploads are an exception: they do not wait for the disk. Writers
// take the write lock at the beginning of their transaction and wait for each other, in this
// process and in others; readers never wait. Concurrent pushes share a commit. [DB.Apply] is
// one transaction for a whole promotion.
//
// All SQL is in .sql files: the schema in the module's migrations folder, the queries in
// queries/, from which sqlc generates internal/dbsqlc. They contain no rules about promotions.
package sqlite

// The generator has its own module, so that it does not pin other dependencies.
//go:generate go tool -modfile=../../tools/sqlc/go.mod sqlc generate
