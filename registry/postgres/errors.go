package postgres

import (
	"context"
	"errors"
	"io"
	"net"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"mlpromote.dev/mlpromote/registry"
)

// The conditions of PostgreSQL's table of error codes that are told apart, and their
// classes, which are the first two characters.
const (
	notNullViolation      = "23502"
	readOnlyTransaction   = "25006"
	serializationFailure  = "40001"
	deadlockDetected      = "40P01"
	undefinedTable        = "42P01"
	insufficientPrivilege = "42501"
	programLimit          = "54000"
	diskFull              = "53100"
	lockNotAvailable      = "55P03"
	queryCanceled         = "57014"

	classConnection    = "08"
	classData          = "22"
	classConstraint    = "23"
	classTransaction   = "25" // idle for too long, or taking too long
	classAuthorization = "28"
	className          = "3D"
	classResources     = "53"
	classOperator      = "57" // shutting down, crashed, starting up
	classDamage        = "XX"

	fatal = "FATAL" // severity of what ends the connection
)

// interpretError gives a failure of the database the code and the words of the ports.
// It leaves nil and what has a code already as they are.
func (db *DB) interpretError(subject string, err error) error {
	var coded *registry.Error
	var commit *commitError
	var failure *pgconn.PgError
	switch {
	case err == nil, errors.As(err, &coded):
		return err
	case errors.Is(err, pgx.ErrNoRows):
		return registry.Errorf(registry.CodeNotFound, "%s: not found", subject)
	case errors.As(err, &commit):
		return registry.ForClients(
			registry.Errorf(registry.CodeUnavailable, "%s: database %s: %w; look before you try again", subject, db.name, err),
			"%s: the database was lost at the commit, which may have been made; look before you try again", subject)
	case errors.As(err, &failure):
		return away(subject, db.interpretFailure(subject, failure, err))
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return away(subject, registry.Errorf(registry.CodeOf(err), "%s: database %s: %w", subject, db.name, err))
	case disconnected(err):
		return away(subject, registry.Errorf(registry.CodeUnavailable, "%s: database %s cannot be reached; try again: %w", subject, db.name, err))
	}
	return registry.Errorf(registry.CodeInternal, "%s: database %s: %w", subject, db.name, err)
}

// away keeps where the database is, and as whom we go there, from remote clients.
func away(subject string, err error) error {
	if registry.CodeOf(err) != registry.CodeUnavailable {
		return err
	}
	return registry.ForClients(err, "%s: the database does not serve now; try again", subject)
}

// interpretFailure is for what the server itself reports.
func (db *DB) interpretFailure(subject string, failure *pgconn.PgError, err error) error {
	switch failure.Code {
	case serializationFailure, deadlockDetected, lockNotAvailable, queryCanceled:
		return registry.Errorf(registry.CodeUnavailable, "%s: database %s is busy with other changes; nothing has changed; try again: %w", subject, db.name, err)
	case readOnlyTransaction:
		return registry.Errorf(registry.CodeUnavailable, "%s: database %s takes no changes now, as a standby does; try again, or name the primary: %w", subject, db.name, err)
	case diskFull:
		return registry.Errorf(registry.CodeUnavailable, "%s: no space is left for database %s; nothing has changed; free space there and try again: %w", subject, db.name, err)
	case notNullViolation, programLimit:
		return registry.Errorf(registry.CodeInvalid, "%s: a name is too long, or has a quote, a backslash or a control character", subject)
	case insufficientPrivilege:
		return registry.Lastingf(registry.CodeUnavailable, "%s: the user of database %s must own it, or be allowed to create in its schema: %w", subject, db.name, err)
	}
	switch failure.Code[:2] {
	case classConnection, classOperator, classResources, classTransaction:
		return registry.Errorf(registry.CodeUnavailable, "%s: database %s does not serve now; try again: %w", subject, db.name, err)
	case classAuthorization, className:
		return registry.Lastingf(registry.CodeUnavailable, "%s: database %s does not let us in; look at its name, the user and the password: %w", subject, db.name, err)
	case classData:
		return registry.Errorf(registry.CodeInvalid, "%s: a text has a NUL byte or is not UTF-8", subject)
	case classConstraint:
		return registry.Errorf(registry.CodeConflict, "%s: the database holds something else already; nothing has changed: %w", subject, err)
	case classDamage:
		return registry.Errorf(registry.CodeInternal, "%s: database %s is damaged; restore it from a backup: %w", subject, db.name, err)
	}
	return registry.Errorf(registry.CodeInternal, "%s: database %s: %w", subject, db.name, err)
}

// disconnected reports whether err comes from the way to the server.
func disconnected(err error) bool {
	var connect *pgconn.ConnectError
	var network net.Error
	return errors.As(err, &connect) || errors.As(err, &network) || pgconn.SafeToRetry(err) ||
		errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, net.ErrClosed) || errors.Is(err, pgconn.ErrConnClosed)
}

// unstorable reports whether an argument is what no column can hold, such as a NUL byte.
func unstorable(err error) bool {
	var failure *pgconn.PgError
	return errors.As(err, &failure) && failure.Code[:2] == classData
}
