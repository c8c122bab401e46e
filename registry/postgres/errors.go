package postgres

import (
	"context"
	"errors"
	"io"
	"net"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/internal/catalog"
)

// The PostgreSQL error codes that are distinguished, and their classes, which are the first two
// characters.
const (
	notNullViolation      = "23502"
	readOnlyTransaction   = "25006"
	serializationFailure  = "40001"
	deadlockDetected      = "40P01"
	undefinedTable        = "42P01"
	undefinedColumn       = "42703"
	insufficientPrivilege = "42501"
	programLimit          = "54000"
	diskFull              = "53100"
	lockNotAvailable      = "55P03"
	queryCanceled         = "57014"

	classConnection    = "08"
	classData          = "22"
	classConstraint    = "23"
	classTransaction   = "25" // idle or running for too long
	classAuthorization = "28"
	className          = "3D"
	classResources     = "53"
	classOperator      = "57" // shutting down, crashed, starting up
	classDamage        = "XX"

	fatal = "FATAL" // severity of errors that end the connection
)

// interpretError converts a failure of the database to an error of the ports.
// It returns nil and errors with a code unchanged.
func (db *DB) interpretError(subject string, err error) error {
	var coded *registry.Error
	var commit *commitError
	var failure *pgconn.PgError
	switch {
	case err == nil, errors.As(err, &coded):
		return err
	case errors.Is(err, pgx.ErrNoRows), errors.Is(err, catalog.ErrNoRow):
		return registry.Errorf(registry.CodeNotFound, "%s: not found", subject)
	case errors.As(err, &commit):
		return registry.ForClients(
			registry.Errorf(registry.CodeUnavailable, "%s: database %s: %w; check before you try again", subject, db.name, err),
			"%s: the database was lost at the commit, which may have been made; check before you try again", subject)
	case errors.As(err, &failure):
		return hideLocation(subject, db.interpretFailure(subject, failure, err))
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return hideLocation(subject, registry.Errorf(registry.CodeOf(err), "%s: database %s: %w", subject, db.name, err))
	case disconnected(err):
		return hideLocation(
			subject,
			registry.Errorf(registry.CodeUnavailable, "%s: database %s cannot be reached; try again: %w", subject, db.name, err),
		)
	}
	return registry.Errorf(registry.CodeInternal, "%s: database %s: %w", subject, db.name, err)
}

// hideLocation hides the location and user of the database from remote clients.
func hideLocation(subject string, err error) error {
	if registry.CodeOf(err) != registry.CodeUnavailable {
		return err
	}
	return registry.ForClients(err, "%s: the database is unavailable; try again", subject)
}

// interpretFailure converts errors that the server reports.
func (db *DB) interpretFailure(subject string, failure *pgconn.PgError, err error) error {
	switch failure.Code {
	case serializationFailure, deadlockDetected, lockNotAvailable, queryCanceled:
		return registry.Errorf(registry.CodeUnavailable,
			"%s: database %s is busy with other changes; nothing has changed; try again: %w", subject, db.name, err)
	case readOnlyTransaction:
		return registry.Errorf(registry.CodeUnavailable,
			"%s: database %s is read-only, like a standby; try again, or configure the primary: %w", subject, db.name, err)
	case diskFull:
		return registry.Errorf(registry.CodeUnavailable,
			"%s: no space is left for database %s; nothing has changed; free space there and try again: %w",
			subject, db.name, err)
	case notNullViolation, programLimit:
		return registry.Errorf(registry.CodeInvalid,
			"%s: a name is too long, or has a quote, a backslash or a control character", subject)
	case insufficientPrivilege:
		return registry.Lastingf(registry.CodeUnavailable,
			"%s: the user of database %s must own it, or be allowed to create in its schema: %w", subject, db.name, err)
	}
	switch failure.Code[:2] {
	case classConnection, classOperator, classResources, classTransaction:
		return registry.Errorf(registry.CodeUnavailable,
			"%s: database %s is unavailable; try again: %w", subject, db.name, err)
	case classAuthorization, className:
		return registry.Lastingf(registry.CodeUnavailable,
			"%s: database %s rejected the login; check the database name, the user and the password: %w", subject, db.name, err)
	case classData:
		return registry.Errorf(registry.CodeInvalid, "%s: a text has a NUL byte or is not UTF-8", subject)
	case classConstraint:
		return registry.Errorf(registry.CodeConflict,
			"%s: the database already has a different value; nothing has changed: %w", subject, err)
	case classDamage:
		return registry.Errorf(registry.CodeInternal,
			"%s: database %s is damaged; restore it from a backup: %w", subject, db.name, err)
	}
	return registry.Errorf(registry.CodeInternal, "%s: database %s: %w", subject, db.name, err)
}

// disconnected reports whether err is a failure of the connection.
func disconnected(err error) bool {
	var connect *pgconn.ConnectError
	var network net.Error
	return errors.As(err, &connect) || errors.As(err, &network) || pgconn.SafeToRetry(err) ||
		errors.Is(
			err,
			io.EOF,
		) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, net.ErrClosed) || errors.Is(err, pgconn.ErrConnClosed)
}

// unstorable reports whether an argument cannot be stored in a column, such as one with a NUL
// byte.
func unstorable(err error) bool {
	var failure *pgconn.PgError
	return errors.As(err, &failure) && failure.Code[:2] == classData
}

// commitError says that the response to a commit was lost.
type commitError struct{ err error }

func (e *commitError) Error() string {
	return "the response to the commit was lost, so it is unknown whether the change was made: " + e.err.Error()
}

func (e *commitError) Unwrap() error { return e.err }
