package sqlite

import (
	"context"
	"database/sql"
	"database/sql/driver"
	_ "embed"
	"errors"
	"fmt"
	"strings"
	"sync"

	"mlpromote.dev/mlpromote/registry/internal/rounds"
)

//go:embed data_version.sql
var dataVersion string

// version identifies a state of the database. If two versions are equal, no process committed
// anything in between.
type version struct {
	connection int   // SQLite counts for each connection; a new connection begins again
	data       int64 // see https://sqlite.org/pragma.html#pragma_data_version
}

// versions asks SQLite for the version of a database. It keeps one connection for that, which
// never writes: SQLite does not count the commits of the connection that asks.
type versions struct {
	pool   *prepared
	rounds rounds.Group[asked]

	mu         sync.Mutex
	opened     int // connections so far
	connection *sql.Conn
	ask        versionStatement // of connection
}

// asked is what SQLite said.
type asked struct {
	version
	ok bool
}

// versionStatement is a statement of the driver. Calling it directly takes two thirds of the time
// that a call through database/sql takes.
type versionStatement interface {
	driver.Stmt
	driver.StmtQueryContext
}

// now returns the version of the database, after every commit that returned before the call.
// It returns false if SQLite cannot tell. Requests at the same time share an answer.
func (v *versions) now(ctx context.Context) (version, bool) {
	a := v.rounds.Do(func() asked { return v.query(ctx) })
	return a.version, a.ok
}

// query asks SQLite.
func (v *versions) query(ctx context.Context) asked {
	// The driver would start a goroutine that watches for the end of ctx.
	ctx = context.WithoutCancel(ctx)
	v.mu.Lock()
	defer v.mu.Unlock()
	if err := v.open(ctx); err != nil {
		return asked{}
	}
	var row [1]driver.Value
	err := v.connection.Raw(func(any) error {
		rows, err := v.ask.QueryContext(ctx, nil)
		if err != nil {
			return err
		}
		return errors.Join(rows.Next(row[:]), rows.Close())
	})
	data, ok := row[0].(int64)
	if err != nil || !ok {
		_ = v.release() // the next call opens another one
		return asked{}
	}
	return asked{version{v.opened, data}, true}
}

// open opens the connection, unless it is open.
func (v *versions) open(ctx context.Context) (err error) {
	if v.connection != nil {
		return nil
	}
	if v.connection, err = v.pool.Conn(ctx); err != nil {
		return err
	}
	v.opened++
	err = v.connection.Raw(func(c any) error {
		preparer, ok := c.(driver.ConnPrepareContext)
		if !ok {
			return fmt.Errorf("%T cannot prepare statements", c)
		}
		// The driver compiles a text that goes on after its first statement for every call, even
		// if only the end of a line follows.
		statement, err := preparer.PrepareContext(ctx, strings.TrimSpace(dataVersion))
		if err != nil {
			return err
		}
		if v.ask, ok = statement.(versionStatement); !ok {
			return errors.Join(fmt.Errorf("%T cannot query", statement), statement.Close())
		}
		return nil
	})
	if err != nil {
		err = errors.Join(err, v.release())
	}
	return err
}

// release gives the connection back to the pool. The statement goes first: SQLite keeps a
// connection open that still has one.
func (v *versions) release() error {
	if v.connection == nil {
		return nil
	}
	var err error
	if v.ask != nil {
		err = v.connection.Raw(func(any) error { return v.ask.Close() })
	}
	err = errors.Join(err, v.connection.Close())
	v.connection, v.ask = nil, nil
	return err
}

// Close closes the connection and its pool.
func (v *versions) Close() error {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.pool == nil {
		return nil
	}
	return errors.Join(v.release(), v.pool.Close())
}
