package sqlite

import (
	"context"
	"database/sql"
	"sync"
)

// prepared is a pool whose statements are compiled once per connection. SQLite otherwise
// compiles one with every call, which takes longer than running it. What cannot be
// prepared goes to the pool as it is, which says why.
type prepared struct {
	*sql.DB
	known sync.Map // string, *sql.Stmt
}

// statement gives a statement that is compiled, or nil.
func (p *prepared) statement(ctx context.Context, query string) *sql.Stmt {
	if known, ok := p.known.Load(query); ok {
		return known.(*sql.Stmt)
	}
	made, err := p.PrepareContext(ctx, query)
	if err != nil {
		return nil
	}
	p.known.Store(query, made) // in place of somebody's who was faster; the pool closes both
	return made
}

func (p *prepared) QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error) {
	if s := p.statement(ctx, query); s != nil { //nolint:sqlclosecheck // it is kept, until the pool is closed
		return s.QueryContext(ctx, args...)
	}
	return p.DB.QueryContext(ctx, query, args...)
}

// QueryRowContext does not watch for the end of ctx while it looks: a row is found by
// its key, in less time than the two goroutines cost that would watch.
func (p *prepared) QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row {
	if s := p.statement(ctx, query); s != nil { //nolint:sqlclosecheck // it is kept, until the pool is closed
		if ctx.Err() == nil {
			ctx = context.WithoutCancel(ctx)
		}
		return s.QueryRowContext(ctx, args...)
	}
	return p.DB.QueryRowContext(ctx, query, args...)
}

func (p *prepared) ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error) {
	if s := p.statement(ctx, query); s != nil { //nolint:sqlclosecheck // it is kept, until the pool is closed
		return s.ExecContext(ctx, args...)
	}
	return p.DB.ExecContext(ctx, query, args...)
}
