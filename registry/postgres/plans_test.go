package postgres

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"mlpromote.dev/mlpromote/registry/postgres/pgtest"
)

// TestPlans checks how the server answers what resolve and listings ask: by indexes, and
// without looking at more rows than belong to the answer. The server is told to prefer
// indexes also where a table has a few pages and there is nothing to gain.
func TestPlans(t *testing.T) {
	t.Parallel()
	db, asked := openTraced(t, pgtest.Database(t)+"?enable_seqscan=off")
	r := rows{engines: 10_000}
	r.fill(t, db)
	r.checkPlans(t, db, asked)
}

// TestPlansLarge does so for a million engines.
func TestPlansLarge(t *testing.T) {
	t.Parallel()
	if os.Getenv("MLPROMOTE_LARGE") == "" {
		t.Skip("a million engines take minutes and gigabytes; MLPROMOTE_LARGE=1 asks for it")
	}
	db, asked := openTraced(t, pgtest.New(t, bulk()...).Database(t))
	r := rows{engines: 1_000_000}
	r.fill(t, db)
	r.checkPlans(t, db, asked)
}

// bulk is settings for filling a database that nobody will miss.
func bulk() []string { return []string{"fsync=off", "max_wal_size=8GB", "shared_buffers=1GB"} }

// tracer notes what is sent to the server.
type tracer struct {
	mu    sync.Mutex
	asked []statement
}

type statement struct {
	sql     string
	args    []any
	planned bool // with its arguments, and so every time
}

// TraceQueryStart notes a statement.
func (tr *tracer) TraceQueryStart(ctx context.Context, _ *pgx.Conn, data pgx.TraceQueryStartData) context.Context {
	s := statement{sql: data.SQL, args: data.Args}
	if len(s.args) > 0 {
		if mode, ok := s.args[0].(pgx.QueryExecMode); ok {
			s.planned, s.args = mode == pgx.QueryExecModeCacheDescribe, s.args[1:]
		}
	}
	tr.mu.Lock()
	defer tr.mu.Unlock()
	tr.asked = append(tr.asked, s)
	return ctx
}

// TraceQueryEnd is there for the interface.
func (*tracer) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}

// take gives what was noted since the last time.
func (tr *tracer) take() []statement {
	tr.mu.Lock()
	defer tr.mu.Unlock()
	asked := tr.asked
	tr.asked = nil
	return asked
}

func openTraced(tb testing.TB, url string) (*DB, *tracer) {
	tb.Helper()
	config, err := parse(url)
	if err != nil {
		tb.Fatal(err)
	}
	tr := &tracer{}
	config.ConnConfig.Tracer = tr
	db, err := open(tb.Context(), config)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = db.Close() })
	return db, tr
}

// checkPlans asks every question and has the server explain what that led to.
func (r rows) checkPlans(tb testing.TB, db *DB, asked *tracer) {
	tb.Helper()
	conn, err := db.pool.Acquire(tb.Context())
	if err != nil {
		tb.Fatal(err)
	}
	defer conn.Release()
	for _, q := range questions() {
		asked.take()
		if err := q.ask(tb.Context(), db, r, r.releases()/2+1); err != nil {
			tb.Errorf("%s: %v", q.name, err)
		}
		statements := asked.take()
		explained := 0
		for _, s := range statements {
			if len(s.args) == 0 {
				continue // of a connection that was opened or looked after
			}
			explained++
			for _, mode := range s.modes() {
				p, err := explain(tb.Context(), conn, s, mode)
				if err != nil {
					tb.Fatalf("%s: %v", q.name, err)
				}
				if why := p.judge(); why != "" {
					tb.Errorf("%s of %d engines (%s): %s\n%s%v\n%s", q.name, r.engines, mode, why, s.sql, s.args, p.text)
				}
			}
		}
		if want := q.queries(); explained != want {
			tb.Errorf("%s: %d queries, want %d", q.name, explained, want)
		}
	}
}

// modes are the ways in which the server may plan a statement.
func (s statement) modes() []string {
	if s.planned {
		return []string{"force_custom_plan"}
	}
	return []string{"force_custom_plan", "force_generic_plan"}
}

// plan is what EXPLAIN says.
type plan struct {
	root node
	text string
}

type node struct {
	Type      string  `json:"Node Type"`
	Relation  string  `json:"Relation Name"`
	Rows      float64 `json:"Actual Rows"`
	Loops     float64 `json:"Actual Loops"`
	Removed   float64 `json:"Rows Removed by Filter"`
	Rechecked float64 `json:"Rows Removed by Index Recheck"`
	Plans     []node  `json:"Plans"`
}

// explain runs a statement as the server would after it has prepared it.
func explain(ctx context.Context, conn *pgxpool.Conn, s statement, mode string) (plan, error) {
	var literals []string
	for _, arg := range s.args {
		if text, ok := arg.(string); ok {
			literals = append(literals, "'"+strings.ReplaceAll(text, "'", "''")+"'")
		} else {
			literals = append(literals, fmt.Sprint(arg))
		}
	}
	for _, statement := range []string{"SET plan_cache_mode = " + mode, "DEALLOCATE ALL", "PREPARE asked AS " + s.sql} {
		if _, err := conn.Conn().PgConn().Exec(ctx, statement).ReadAll(); err != nil {
			return plan{}, fmt.Errorf("%s: %w", statement, err)
		}
	}
	results, err := conn.Conn().PgConn().Exec(ctx,
		"EXPLAIN (ANALYZE, TIMING OFF, FORMAT JSON) EXECUTE asked ("+strings.Join(literals, ", ")+")").ReadAll()
	if err != nil {
		return plan{}, err
	}
	text := results[0].Rows[0][0]
	var explained []struct{ Plan node }
	if err := json.Unmarshal(text, &explained); err != nil {
		return plan{}, err
	}
	return plan{explained[0].Plan, string(text)}, nil
}

// judge says what is wrong with a plan, or nothing.
func (p plan) judge() string {
	looked := 0.0
	for _, n := range p.root.all() {
		switch n.Type {
		case "Index Scan", "Index Only Scan":
			looked += n.Loops * (n.Rows + n.Removed)
		case "Bitmap Heap Scan":
			looked += n.Loops * (n.Rows + n.Removed + n.Rechecked)
		case "Limit", "Nested Loop", "Merge Join", "Bitmap Index Scan", "Sort", "Aggregate", "Result", // of what was looked at
			"CTE Scan", "WorkTable Scan", "Recursive Union": // of what the statement itself made
		default:
			return n.Type + " " + n.Relation
		}
	}
	// Two tables are joined in some, and a merge reads a little further than it must.
	if most := 3*p.root.Rows + pageSize; looked > most {
		return fmt.Sprintf("%.0f rows were looked at for %.0f", looked, p.root.Rows)
	}
	return ""
}

func (n node) all() []node {
	found := []node{n}
	for _, below := range n.Plans {
		found = append(found, below.all()...)
	}
	return found
}
