package releases

import (
	"context"
	"slices"
	"strings"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/api"
	"mlpromote.dev/mlpromote/registry/artifact"
	"mlpromote.dev/mlpromote/registry/storage"
	"mlpromote.dev/mlpromote/web/page"
)

// Coverage is the engine that a node type gets of two environments.
type Coverage struct {
	Node    string
	Machine string
	Engines []Found
	Differs bool
}

// Found is the answer of a resolve: an engine, or why there is none.
type Found struct {
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

// NodesShown is how many node types a page resolves for.
const NodesShown = 50

// At is a release in an environment; without a digest, its head.
type At struct {
	Environment string
	Release     registry.Digest
}

// ReadCoverage resolves releases of a model for each node type. Readers who may read no node types get none.
func ReadCoverage(ctx context.Context, config *page.Config, model string, places ...At) (rows []Coverage, cut bool, err error) {
	if err := config.Authorize(ctx, storage.PermissionRead, "", ""); registry.HasCode(err, registry.CodeForbidden) {
		return nil, false, nil
	} else if err != nil {
		return nil, false, err
	}
	nodes, err := config.NodeTypes.List(ctx, "", NodesShown+1)
	if err != nil {
		return nil, false, err
	}
	if cut = len(nodes) > NodesShown; cut {
		nodes = nodes[:NodesShown]
	}
	for _, n := range nodes {
		row := Coverage{Node: registry.PlainText(n.Name), Machine: Machine(n.Document)}
		for _, place := range places {
			f, err := FindEngine(ctx, config.Registry, api.ResolveQuery{Environment: place.Environment, Model: model, Version: string(place.Release), Node: n.Document})
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

// FindEngine resolves, and describes also that there is no engine.
func FindEngine(ctx context.Context, reg api.Interface, q api.ResolveQuery) (Found, error) {
	f := Found{Environment: q.Environment}
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
		f.Label, f.URL = answer.Engine.Label(), page.EngineURL(q.Model, answer.Engine.Digest, q.Environment)
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

// Machine describes a node in words.
func Machine(n artifact.Node) string {
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

// Gets is the engine, or why there is none.
func (f Found) Gets() string {
	if f.URL != "" {
		return f.Label
	}
	return f.Missing
}
