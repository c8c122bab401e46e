package client

import (
	"context"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/api"
	"mlpromote.dev/mlpromote/registry/artifact"
	"mlpromote.dev/mlpromote/registry/storage"
)

// NodeTypes is the service's table of named nodes.
func (c *Client) NodeTypes() storage.NodeTypes { return table[artifact.Node]{c, api.NodeTypes} }

// Runtimes is the service's table of named runtimes.
func (c *Client) Runtimes() storage.Runtimes { return table[artifact.Runtime]{c, api.Runtimes} }

// table is a registry.Table over REST.
type table[T any] struct {
	client *Client
	rows   api.Documents[T]
}

// Put stores a document.
func (t table[T]) Put(ctx context.Context, name string, document T) error {
	sent, err := api.Send(&t.rows.Put.Row, api.NameQuery{Name: name})
	if err != nil {
		return err
	}
	sent.Body = document
	_, _, err = t.client.exchange(ctx, t.rows.Put.Method, sent, new(api.None))
	return err
}

// Get returns a document.
func (t table[T]) Get(ctx context.Context, name string) (document T, err error) {
	if err := registry.ValidateName(name); err != nil {
		return document, err
	}
	return api.Ask(ctx, t.client.call, t.rows.Get, api.NameQuery{Name: name})
}

// List returns a page of documents.
func (t table[T]) List(ctx context.Context, after string, limit int) ([]registry.Named[T], error) {
	return api.Ask(ctx, t.client.call, t.rows.List, api.AfterQuery{After: after, Paging: api.Paging{Limit: storage.PageLimit(limit)}})
}

// Delete deletes a document.
func (t table[T]) Delete(ctx context.Context, name string) error {
	_, err := api.Ask(ctx, t.client.call, t.rows.Delete, api.NameQuery{Name: name})
	return err
}
