package web

import (
	"context"
	"slices"
	"strings"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/api"
	"mlpromote.dev/mlpromote/registry/artifact"
	"mlpromote.dev/mlpromote/registry/storage"
)

// coverage is the engine that a node type gets of two environments.
type coverage struct {
	Node    string
	Machine string
	Engines []found
	Differs bool
}

// found is the answer of a resolve: an engine, or why there is none.
type found struct {
	Environment string
	Label       string
	URL         string
	Missing     string // why there is no engine; empty if there is one
	Reasons     []candidate
}

// candidate is an engine that was not chosen, and why.
type candidate struct {
	Label   string
	Reasons []string
}

// nodesShown is how many node types a page resolves for.
const nodesShown = 50

// at is a release in an environment; without a digest, its head.
type at struct {
	environment string
	release     registry.Digest
}

// readCoverage resolves releases of a model for each node type. Readers who may read no node types get none.
func readCoverage(ctx context.Context, config *Config, model string, places ...at) (rows []coverage, cut bool, err error) {
	if err := config.Authorize(ctx, storage.PermissionRead, "", ""); registry.HasCode(err, registry.CodeForbidden) {
		return nil, false, nil
	} else if err != nil {
		return nil, false, err
	}
	nodes, err := config.NodeTypes.List(ctx, "", nodesShown+1)
	if err != nil {
		return nil, false, err
	}
	if cut = len(nodes) > nodesShown; cut {
		nodes = nodes[:nodesShown]
	}
	for _, n := range nodes {
		row := coverage{Node: registry.PlainText(n.Name), Machine: machine(n.Document)}
		for _, place := range places {
			f, err := findEngine(ctx, config.Registry, api.ResolveQuery{Environment: place.environment, Model: model, Version: string(place.release), Node: n.Document})
			if err != nil {
				return nil, false, err
			}
			row.Engines = append(row.Engines, f)
		}
		for _, f := range row.Engines {
			row.Differs = row.Differs || f.URL != "" && f.Label != row.Engines[0].Label || f.Missing != row.Engines[0].Missing
		}
		rows = append(rows, row)
	}
	return rows, cut, nil
}

// findEngine resolves, and describes also that there is no engine.
func findEngine(ctx context.Context, reg api.Interface, q api.ResolveQuery) (found, error) {
	f := found{Environment: q.Environment}
	answer, err := reg.Resolve(ctx, q)
	for _, c := range answer.Candidates {
		if c.Chosen {
			continue
		}
		rejected := candidate{Label: registry.PlainText(c.Label)}
		for _, reason := range c.Reasons {
			rejected.Reasons = append(rejected.Reasons, registry.PlainText(reason))
		}
		f.Reasons = append(f.Reasons, rejected)
	}
	switch code := registry.CodeOf(err); {
	case err == nil && answer.Engine != nil:
		f.Label, f.URL = answer.Engine.Label(), engineURL(q.Model, answer.Engine.Digest, q.Environment)
	case err == nil, code == registry.CodeNoEngine:
		f.Missing = "no engine fits"
	case code == registry.CodeNotFound:
		f.Missing = "nothing is there"
	case code == registry.CodePolicy, code == registry.CodeForbidden, code == registry.CodeTrust, code == registry.CodeDigest, code == registry.CodeInvalid:
		text, _ := registry.TextForClients(err)
		f.Missing = registry.PlainText(text)
	default:
		return f, err
	}
	return f, nil
}

// machine describes a node in words.
func machine(n artifact.Node) string {
	words := []string{n.OS, n.CPU.Arch}
	if n.CPU.Level != "" {
		words = append(words, "level "+n.CPU.Level)
	}
	text := strings.Join(words, " ")
	for _, a := range n.Accelerators {
		text += ", " + strings.Join(slices.DeleteFunc([]string{a.Product, a.Arch, a.MIG}, func(s string) bool { return s == "" }), " ")
	}
	return registry.PlainText(text)
}

// gets is the engine, or why there is none.
func (f found) gets() string {
	if f.URL != "" {
		return f.Label
	}
	return f.Missing
}
