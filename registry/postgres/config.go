package postgres

import (
	"context"
	"fmt"
	"net"
	neturl "net/url"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/postgres/internal/dbsqlc"
)

const (
	connections    = 16
	connectTimeout = 10 * time.Second
)

// parse parses the URL of a database. Its errors never contain the password.
func parse(url string) (*pgxpool.Config, error) {
	u, err := neturl.Parse(url)
	if err != nil || u.Scheme != "postgres" && u.Scheme != "postgresql" {
		return nil, registry.WithHint(
			registry.Errorf(registry.CodeInvalid, "the URL of the database cannot be read: want postgres://USER@HOST:PORT/NAME"),
			"write special characters of a password as %%XX, or set PGPASSWORD or ~/.pgpass, which need no escape")
	}
	config, err := pgxpool.ParseConfig(url)
	if err != nil {
		return nil, registry.Errorf(registry.CodeInvalid, "the URL of the database: %w", err)
	}
	if !u.Query().Has("pool_max_conns") {
		config.MaxConns = connections
	}
	if config.ConnConfig.ConnectTimeout == 0 {
		config.ConnConfig.ConnectTimeout = connectTimeout
	}
	if config.ConnConfig.RuntimeParams["application_name"] == "" {
		config.ConnConfig.RuntimeParams["application_name"] = "mlpromote"
	}
	config.AfterConnect = greet
	return config, nil
}

// nameOf returns the name of the database for messages.
func nameOf(config *pgx.ConnConfig) string {
	return fmt.Sprintf("%s/%s", net.JoinHostPort(config.Host, strconv.Itoa(int(config.Port))), config.Database)
}

// greet configures a new connection so that its commits are durable.
func greet(ctx context.Context, conn *pgx.Conn) error {
	server, err := dbsqlc.New(conn).ServerGet(ctx)
	if err != nil {
		return err
	}
	if server.Encoding != "UTF8" {
		return registry.WithHint(
			registry.Lastingf(registry.CodeUnavailable,
				"the database has encoding %s, which cannot hold every text: want UTF8", server.Encoding),
			"createdb --encoding UTF8 --template template0 NAME",
		)
	}
	return nil
}
