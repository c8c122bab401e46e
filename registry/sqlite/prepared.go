package sqlite

import (
	"context"
	"database/sql"
	"sync"
)

// prepared is a pool whose statements are compiled once per connection. Otherwise SQLite
// compiles a statement with every call, which takes longer than running it. Statements that
// cannot be prepared go to the pool unprepared, which returns the reason.
type prepared struct {
	*sql.DB
	known sync.Map // string, *sql.Stmt

	mu     sync.Mutex
	wanted []string // by transactions, to be compiled later
}

// statement returns a compiled statement, or nil.
func (p *prepared) statement(ctx context.Context, query string) *sql.Stmt {
	if known, ok := p.known.Load(query); ok {
		return known.(*sql.Stmt)
	}
	made, err := p.PrepareContext(ctx, query)
	if err != nil {
		return nil
	}
	p.known.Store(query, made) // may replace that of a concurrent caller; the pool closes both
	return made
}

func (p *prepared) QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error) {
	if s := p.statement(ctx, query); s != nil { //nolint:sqlclosecheck // it is kept, until the pool is closed
		return s.QueryContext(ctx, args...)
	}
	return p.DB.QueryContext(ctx, query, args...)
}

// QueryRowContext does not watch ctx during the lookup: a lookup by key takes less time than
// starting the two goroutines that would watch.
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

// preparedTx is a transaction that uses the statements of its pool. It cannot compile a missing
// statement for the pool, because the transaction may hold the only connection. It leaves that
// to the next transaction.
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

// prepareWanted compiles the statements that earlier transactions missed.
func (p *prepared) prepareWanted(ctx context.Context) {
	p.mu.Lock()
	wanted := p.wanted
	p.wanted = nil
	p.mu.Unlock()
	for _, query := range wanted {
		p.statement(ctx, query)
	}
}
