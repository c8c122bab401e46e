package client

import (
	"context"
	"fmt"
	"net/http"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/internal/wire"
)

var _ registry.NodeReporter = (*Client)(nil)

// ReportNode says that a node has an engine.
func (c *Client) ReportNode(ctx context.Context, r registry.NodeReport) (registry.NodeReport, error) {
	body := wire.NodeReport{Node: r.Node, NodeType: r.NodeType, Environment: r.Environment, Model: r.Model, Release: r.Release, Engine: r.Engine, Machine: r.Machine}
	var stored registry.NodeReport
	if _, err := c.send(ctx, http.MethodPost, wire.NodeReportsPath, body, &stored); err != nil {
		return registry.NodeReport{}, err
	}
	if stored.Node != r.Node || stored.Engine != r.Engine {
		return registry.NodeReport{}, c.strange("node report", fmt.Errorf("want %s with %s, got %.40q with %.80q", r.Node, r.Engine, stored.Node, stored.Engine))
	}
	return stored, nil
}

// NodeReports lists a page of reports. Next is an opaque cursor of the service.
func (c *Client) NodeReports(ctx context.Context, environment, model, after string, limit int) (registry.Page[registry.NodeReport], error) {
	return page[registry.NodeReport](ctx, c, wire.NodeReportsPath, query("environment", environment, "model", model), after, limit)
}

// SilentNodes lists a page of reports that have expired. Next is an opaque cursor of the service.
func (c *Client) SilentNodes(ctx context.Context, environment, model, after string, limit int) (registry.Page[registry.NodeReport], error) {
	return page[registry.NodeReport](ctx, c, wire.NodeReportsPath, query("environment", environment, "model", model, "silent", "true"), after, limit)
}
