package nodeverbs

import (
	"os"
	"strings"

	"github.com/spf13/cobra"

	"mlpromote.dev/mlpromote/cmd/internal/command"
	"mlpromote.dev/mlpromote/cmd/internal/connect"
	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/api"
	"mlpromote.dev/mlpromote/registry/artifact"
	"mlpromote.dev/mlpromote/registry/node"
)

// nodeFlags is the flags that resolve and pull share.
type nodeFlags struct {
	environment, version, node, nodeType, labels, runtime, variant string
}

func (q *nodeFlags) flags(c *cobra.Command) {
	c.Flags().StringVar(&q.environment, "env", "", "environment")
	c.Flags().StringVar(&q.version, "version", "", "tag of a release (default: the head)")
	c.Flags().StringVar(&q.node, "node", "", "node document (default: this machine)")
	c.Flags().StringVar(&q.nodeType, "node-type", "", "node type that the registry knows, in place of --node")
	c.Flags().StringVar(&q.labels, "labels", "",
		"file with a Kubernetes node as kubectl get node -o json prints it, in place of --node; --runtime names its runtime")
	c.Flags().StringVar(&q.runtime, "runtime", "", "NAME:VERSION such as onnxruntime:1.30.0, or a runtime document (default: the node's)")
	c.Flags().StringVar(&q.variant, "variant", "", "only this variant")
	command.Required(c, "env")
}

// check refuses a flag without a value, as a variable that is not set leaves it: the default of a version is not what was meant.
func (q *nodeFlags) check(c *cobra.Command) error {
	for _, name := range []string{"version", "node", "node-type", "labels", "runtime", "variant"} {
		if f := c.Flags().Lookup(name); f != nil && f.Changed && f.Value.String() == "" {
			return registry.Errorf(registry.CodeInvalid, "--%s has no value: leave it out for the default", name)
		}
	}
	given := 0
	for _, from := range []string{q.node, q.nodeType, q.labels} {
		if from != "" {
			given++
		}
	}
	if given > 1 {
		return registry.Errorf(registry.CodeInvalid, "--node, --node-type and --labels: want one of them")
	}
	return nil
}

// query asks about the node that is named, or about this machine with what our own
// toolchains brought.
func (v Verbs) query(c *cobra.Command, r *connect.Registry, q nodeFlags, model string) (api.ResolveQuery, error) {
	ctx, query := c.Context(), api.ResolveQuery{Environment: q.environment, Model: model, Version: q.version, Variant: q.variant}
	if err := q.check(c); err != nil {
		return query, err
	}
	var err error
	switch {
	case q.nodeType != "":
		query.Node, err = r.NodeTypes.Get(ctx, q.nodeType)
		if registry.HasCode(err, registry.CodeNotFound) {
			err = registry.WithHint(registry.Errorf(registry.CodeNotFound, "--node-type %s: the registry knows no such node type", q.nodeType),
				"mlpromote node-type list shows the node types, and node-type put makes one")
		}
	case q.labels != "":
		query.Node, err = readLabels(q.labels)
	case q.node != "":
		query.Node, err = node.ParseFile(q.node)
	default:
		query.Node, err = v.Machine(ctx)
	}
	if err != nil || q.runtime == "" {
		return query, err
	}
	runtime, err := node.ParseRuntime(q.runtime)
	query.Runtime = &runtime
	return query, err
}

// withRuntimeHint adds to an error of resolve which --runtime to give, where the node lacks only runtimes and none was
// given. A runtime that mlpromote did not install is not found by itself.
func withRuntimeHint(err error, query api.ResolveQuery, answer api.Resolution) error {
	if query.Runtime != nil || !registry.HasCode(err, registry.CodeNoEngine) {
		return err
	}
	for _, c := range answer.Candidates {
		missing := c.MissingRuntimes
		if len(missing) == 0 {
			continue
		}
		if len(missing) > 1 {
			return registry.WithHint(err, "%s lacks only runtimes, which the node does not declare: if they are there, name them in a runtime document: --runtime FILE", c.Label)
		}
		for name, need := range missing {
			version := strings.TrimPrefix(need, ">= ")
			if strings.ContainsAny(version, " <>=,") {
				version = "VERSION"
			}
			return registry.WithHint(err,
				"%s lacks only %s %s, which the node does not declare: if it has it, name it with --runtime %s:%s; node describe lists the features of this machine",
				c.Label, name, need, name, version)
		}
	}
	return err
}

// readLabels reads the node that the labels in a file describe.
func readLabels(path string) (artifact.Node, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return artifact.Node{}, registry.Errorf(registry.CodeInvalid, "labels: %w", err)
	}
	labels, err := node.ParseLabels(path, data)
	if err != nil {
		return artifact.Node{}, err
	}
	return node.FromLabels(labels)
}
