package client

import (
	"context"
	"net/http"
	"strconv"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/internal/wire"
)

// NodeTypes is the service's table of named nodes.
func (c *Client) NodeTypes() registry.NodeTypes {
	return table[registry.Node]{c, wire.NodeTypesPath}
}

// Runtimes is the service's table of named runtimes.
func (c *Client) Runtimes() registry.Runtimes {
	return table[registry.Runtime]{c, wire.RuntimesPath}
}

// table is a registry.Table over REST.
type table[T any] struct {
	client *Client
	path   string
}

// Put stores a document.
func (t table[T]) Put(ctx context.Context, name string, document T) error {
	_, err := t.client.send(ctx, http.MethodPut, t.at(name), document, nil)
	return err
}

// Get returns a document.
func (t table[T]) Get(ctx context.Context, name string) (document T, err error) {
	if err := registry.ValidateName(name); err != nil {
		return document, err
	}
	return document, t.client.get(ctx, t.at(name), nil, &document)
}

// List returns a page of documents.
func (t table[T]) List(ctx context.Context, after string, limit int) ([]registry.Named[T], error) {
	values := query("after", after, "limit", strconv.Itoa(registry.PageLimit(limit)))
	var page []registry.Named[T]
	return page, t.client.get(ctx, t.path, values, &page)
}

// Delete deletes a document.
func (t table[T]) Delete(ctx context.Context, name string) error {
	_, err := t.client.send(ctx, http.MethodDelete, t.at(name), nil, nil)
	return err
}

func (t table[T]) at(name string) string { return t.path + "/" + name }
