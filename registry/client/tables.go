package client

import (
	"context"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/artifact"
	"mlpromote.dev/mlpromote/registry/rest"
	"mlpromote.dev/mlpromote/registry/storage"
)

// NodeTypes is the service's table of named nodes.
func (c *Client) NodeTypes() storage.NodeTypes { return table[artifact.Node]{c, rest.NodeTypes} }

// Runtimes is the service's table of named runtimes.
func (c *Client) Runtimes() storage.Runtimes { return table[artifact.Runtime]{c, rest.Runtimes} }

// table is a registry.Table over REST.
type table[T any] struct {
	client *Client
	rows   rest.Documents[T]
}

// Put stores a document.
func (t table[T]) Put(ctx context.Context, name string, document T) error {
	sent, err := rest.Send(&t.rows.Put.Row, rest.NameQuery{Name: name})
	if err != nil {
		return err
	}
	sent.Body = document
	_, _, err = t.client.exchange(ctx, t.rows.Put.Method, sent, new(rest.None))
	return err
}

// Get returns a document.
func (t table[T]) Get(ctx context.Context, name string) (document T, err error) {
	if err := registry.ValidateName(name); err != nil {
		return document, err
	}
	return rest.Ask(ctx, t.client.call, t.rows.Get, rest.NameQuery{Name: name})
}

// List returns a page of documents.
func (t table[T]) List(ctx context.Context, after string, limit int) ([]registry.Named[T], error) {
	return rest.Ask(ctx, t.client.call, t.rows.List, rest.AfterQuery{After: after, Paging: rest.Paging{Limit: storage.PageLimit(limit)}})
}

// Delete deletes a document.
func (t table[T]) Delete(ctx context.Context, name string) error {
	_, err := rest.Ask(ctx, t.client.call, t.rows.Delete, rest.NameQuery{Name: name})
	return err
}
