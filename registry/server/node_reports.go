package server

import (
	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/rest"
	"mlpromote.dev/mlpromote/registry/storage"
)

// reportNode stores what a node reports.
func reportNode(s server, r *request) (*response, error) {
	var body rest.NodeReport
	if err := read(r, &body); err != nil {
		return nil, err
	}
	stored, err := s.Nodes.ReportNode(r.Context(), storage.NodeReport{
		Node: body.Node, NodeType: body.NodeType, Environment: body.Environment, Model: body.Model, Release: body.Release, Engine: body.Engine, Machine: body.Machine,
	})
	if err != nil {
		return nil, err
	}
	return ok(stored)
}

// listNodeReports lists the reports that count, or those of silent nodes.
func listNodeReports(s server, r *request) (*response, error) {
	after, limit, err := pageOf(r.Values)
	if err != nil {
		return nil, err
	}
	environment, err := environmentOf(r.Values)
	if err != nil {
		return nil, err
	}
	find := s.Nodes.NodeReports
	switch silent := r.Values.Get("silent"); silent {
	case "", "false":
	case "true":
		find = s.Nodes.SilentNodes
	default:
		return nil, registry.Errorf(registry.CodeInvalid, "silent=%.40q: want true or false", silent)
	}
	found, err := find(r.Context(), environment, r.Values.Get("model"), after, limit)
	if err != nil {
		return nil, err
	}
	return list(r, nonNil(found.Items), found.Next, found.Partial)
}
