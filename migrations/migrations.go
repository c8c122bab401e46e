// Package migrations holds the numbered steps that make the schema of each database,
// embedded so that a binary carries them. Files follow goose: NNNNN_name.sql with
// "-- +goose Up" and "-- +goose Down" parts. Until release 0.1.0 a change of the schema edits
// the one step; a released step is never edited, and a change is a new step.
package migrations

import "embed"

// SQLite holds the steps of the SQLite database, under "sqlite". Every step ends by
// setting user_version to its own number, so that an opener can see with one cheap
// read whether there is anything to do. The first sets application_id to [SQLiteMark].
//
//go:embed sqlite/*.sql
var SQLite embed.FS

// SQLiteVersion is the number of the last step in [SQLite].
const SQLiteVersion = 1

// SQLiteMark tells the schema of [SQLite] from others with the same number, which earlier commits made before release 0.1.0. It is
// a sum of the step.
const SQLiteMark = 0x6dc96b63

// Postgres holds the steps of the PostgreSQL database, under "postgres". Every step sets
// schema_version in the table catalog to its own number.
//
//go:embed postgres/*.sql
var Postgres embed.FS

// PostgresVersion is the number of the last step in [Postgres].
const PostgresVersion = 1

// PostgresMark is for [Postgres] what [SQLiteMark] is for [SQLite].
const PostgresMark = 1710993555
