package export

import (
	"context"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"mlpromote.dev/mlpromote/cmd/internal/command"
	"mlpromote.dev/mlpromote/cmd/internal/ui"
	"mlpromote.dev/mlpromote/cmd/mlpromote/internal/wiring"
	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/artifact"
	"mlpromote.dev/mlpromote/registry/evidence"
	"mlpromote.dev/mlpromote/registry/node/cluster"
)

// targetFlags say which target to export, and how.
type targetFlags struct {
	nodeType, engine, form, file string
	noAccelerator                bool
}

// Target writes the requirements of an engine in a form of Kubernetes.
func (v Verbs) Target() *cobra.Command {
	var o targetFlags
	c := &cobra.Command{
		Use:   "target (REF | --node-type NAME) --for node-affinity|resource-claim-template",
		Short: "Write the target of an engine as Kubernetes schedules by it",
		Long: `Writes YAML that lets the scheduler of Kubernetes choose only nodes that meet the target of an engine, or
nodes with all facts of a node type.

node-affinity is a patch of a workload: expressions on the labels of Node Feature Discovery 0.19 and of
NVIDIA's GPU feature discovery. resource-claim-template is a ResourceClaimTemplate (resource.k8s.io/v1,
Kubernetes 1.34) for the DRA drivers gpu.nvidia.com, gpu.amd.com and gpu.intel.com. On nodes with such a
driver, use it with the affinity that --no-accelerator writes.

Both select no node or device that lacks a requirement which they express. Other requirements, such as the
versions of runtimes, are in comments and on stderr: let the pod ask mlpromote-node resolve.`,
		Example: `  mlpromote export target prod/vision/digits:1.4.0 --engine l4/fp16 --for node-affinity -o affinity.yaml
  kubectl patch deployment digits --patch-file affinity.yaml
  mlpromote export target --node-type g6.xlarge --for resource-claim-template | kubectl apply -f -`,
		Args: atMostOne,
		RunE: func(c *cobra.Command, args []string) error {
			if (len(args) == 1) == (o.nodeType != "") {
				return registry.Errorf(registry.CodeInvalid, "export target: want a REF or --node-type NAME")
			}
			if o.nodeType != "" && o.engine != "" {
				return registry.Errorf(registry.CodeInvalid, "--engine is an engine of a REF: want it without --node-type")
			}
			return v.With(c.Context(), func(i *wiring.Instance) error {
				target, err := v.targetOf(c.Context(), i, o, args)
				if err != nil {
					return err
				}
				out, err := Target(target, o.form, !o.noAccelerator)
				if err != nil {
					return err
				}
				return v.writeTarget(out, o.file)
			})
		},
	}
	c.Flags().StringVar(&o.form, "for", "", "node-affinity or resource-claim-template")
	c.Flags().StringVar(&o.nodeType, "node-type", "", "registered node type, in place of an engine")
	c.Flags().StringVar(&o.engine, "engine", "", "TARGET/VARIANT, if REF has several engines for different targets")
	c.Flags().BoolVar(&o.noAccelerator, "no-accelerator", false, "leave the accelerator to a resource claim")
	c.Flags().StringVarP(&o.file, "out", "o", "", "file to write (default: stdout)")
	command.Required(c, "for")
	return c
}

func atMostOne(c *cobra.Command, args []string) error {
	if len(args) > 1 {
		return command.Exactly("REF")(c, args)
	}
	return nil
}

// targetOf finds the target that the flags name, and warns of an engine that nodes do not get.
func (v Verbs) targetOf(ctx context.Context, i *wiring.Instance, o targetFlags, args []string) (artifact.Target, error) {
	if o.nodeType != "" {
		described, err := i.NodeTypes.Get(ctx, o.nodeType)
		if registry.HasCode(err, registry.CodeNotFound) {
			err = registry.WithHint(registry.Errorf(registry.CodeNotFound, "node type %s is unknown", o.nodeType), "mlpromote node-type list")
		}
		if err != nil {
			return artifact.Target{}, err
		}
		return cluster.TargetOf(o.nodeType, described)
	}
	ref, err := registry.ParseRef(args[0])
	if err == nil {
		ref, err = i.WithoutHost(ref)
	}
	if err != nil {
		return artifact.Target{}, err
	}
	release, err := i.Release(ctx, ref.Environment, ref.Model, ref.TagOrDigest())
	if err != nil {
		return artifact.Target{}, err
	}
	target, err := chooseTarget(release, o.engine)
	if err != nil {
		return target, err
	}
	return target, v.warnOfQuarantine(ctx, i, ref.Environment, release, target, o.engine)
}

// warnOfQuarantine warns if the release, or each of its engines that is meant, is in quarantine: no node gets it.
func (v Verbs) warnOfQuarantine(ctx context.Context, i *wiring.Instance, environment string, r artifact.Release, target artifact.Target, label string) error {
	claims, _, err := i.Claims(ctx, environment, r)
	if err != nil {
		return err
	}
	for _, q := range evidence.Quarantines(r, claims, r.Digest) {
		v.UI.Note("warning: %s %s is in quarantine (%q): no node gets it", r.Model, r.Tag(), q.Reason())
		return nil
	}
	for _, e := range r.Engines {
		if e.Target.Name != target.Name || label != "" && e.Label() != label {
			continue
		}
		for _, q := range evidence.Quarantines(r, claims, e.Digest) {
			v.UI.Note("warning: engine %s is in quarantine (%q): no node gets it", e.Label(), q.Reason())
		}
	}
	return nil
}

// chooseTarget is the target of the engine with a label, or the one that all engines share.
func chooseTarget(r artifact.Release, label string) (artifact.Target, error) {
	var labels []string
	var targets []artifact.Target
	for _, e := range r.Engines {
		if label != "" && e.Label() != label {
			labels = append(labels, strconv.Quote(e.Label()))
			continue
		}
		if label != "" || len(targets) == 0 || targets[0].Name != e.Target.Name {
			targets = append(targets, e.Target)
		}
		labels = append(labels, strconv.Quote(e.Label()))
	}
	if len(targets) == 1 {
		return targets[0], nil
	}
	problem := registry.Errorf(registry.CodeInvalid, "%s %s has engines for several targets: want --engine", r.Model, r.Tag())
	if len(targets) == 0 {
		problem = registry.Errorf(registry.CodeNotFound, "%s %s has no engine %.200q", r.Model, r.Tag(), label)
	}
	return artifact.Target{}, registry.WithHint(problem, "it has %s", strings.Join(labels, ", "))
}

func (v Verbs) writeTarget(out ExportedTarget, file string) error {
	for _, u := range out.Unexpressed {
		v.UI.Note("not expressed: %s %s", u.Requirement, ui.Plain(u.Need))
	}
	if file == "" {
		return v.UI.Result(strings.TrimSuffix(out.YAML, "\n"), out)
	}
	if err := Write(file, []byte(out.YAML)); err != nil {
		return err
	}
	out.File = file
	return v.UI.Result(ui.Plain(file)+": target "+ui.Plain(out.Target.Name), out)
}
