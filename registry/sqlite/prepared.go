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

	mu     sync.Mutex
	wanted []string // by transactions
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

// preparedTx is a transaction that uses the statements of its pool. One that it has not
// yet cannot be compiled for later here, where the transaction may have the only
// connection: the next transaction finds it compiled.
type preparedTx struct {
	tx   *sql.Tx
	pool *prepared
}

func (t preparedTx) statement(ctx context.Context, query string) *sql.Stmt {
	if known, ok := t.pool.known.Load(query); ok {
		return t.tx.StmtContext(ctx, known.(*sql.Stmt))
	}
	t.pool.mu.Lock()
	defer t.pool.mu.Unlock()
	t.pool.wanted = append(t.pool.wanted, query)
	return nil
}

func (t preparedTx) PrepareContext(ctx context.Context, query string) (*sql.Stmt, error) {
	return t.tx.PrepareContext(ctx, query)
}

func (t preparedTx) QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error) {
	if s := t.statement(ctx, query); s != nil { //nolint:sqlclosecheck // the end of the transaction closes it
		return s.QueryContext(ctx, args...)
	}
	return t.tx.QueryContext(ctx, query, args...)
}

func (t preparedTx) QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row {
	if s := t.statement(ctx, query); s != nil { //nolint:sqlclosecheck // the end of the transaction closes it
		return s.QueryRowContext(ctx, args...)
	}
	return t.tx.QueryRowContext(ctx, query, args...)
}

func (t preparedTx) ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error) {
	if s := t.statement(ctx, query); s != nil { //nolint:sqlclosecheck // the end of the transaction closes it
		return s.ExecContext(ctx, args...)
	}
	return t.tx.ExecContext(ctx, query, args...)
}

// prepareWanted compiles what transactions before would have liked to find.
func (p *prepared) prepareWanted(ctx context.Context) {
	p.mu.Lock()
	wanted := p.wanted
	p.wanted = nil
	p.mu.Unlock()
	for _, query := range wanted {
		p.statement(ctx, query)
	}
}
