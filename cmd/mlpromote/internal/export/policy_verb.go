package export

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"mlpromote.dev/mlpromote/cmd/internal/command"
	"mlpromote.dev/mlpromote/cmd/internal/ui"
	"mlpromote.dev/mlpromote/cmd/mlpromote/internal/clock"
	"mlpromote.dev/mlpromote/cmd/mlpromote/internal/wiring"
	"mlpromote.dev/mlpromote/registry"
)

// WrittenPolicy is what export policy wrote or checked.
type WrittenPolicy struct {
	File string `json:"file"`
	For  string `json:"for"`
	// Unchanged: the file said the same already, and was left alone.
	Unchanged  bool      `json:"unchanged,omitempty"`
	ExportedAt time.Time `json:"exportedAt"`
	// Current and Differences say with --check what the file is.
	Current     *bool    `json:"current,omitempty"`
	Differences []string `json:"differences,omitempty"`
	Admission
}

// Policy writes a policy for an admission controller.
func (v Verbs) Policy() *cobra.Command {
	var o AdmissionOptions
	var consumer, file, check string
	c := &cobra.Command{
		Use:   "policy --for kyverno|policy-controller --env ENV (-o FILE | --check FILE)",
		Short: "Write a Kubernetes admission policy that admits only promoted releases",
		Long: `Writes YAML for Kyverno (ImageValidatingPolicy) or sigstore's policy-controller
(ClusterImagePolicy). It admits an image or image volume of this registry only if a promoter of the
environment signed a verification summary for it there, and if its digest is not on the list of what
may not be used now: releases and engines in quarantine, restricted, failed, or signed by a revoked
key. That list is of the time of the export. So write the file again, and apply it, whenever
mlpromote export policy --check FILE reports that it is not current (exit code 4). An unchanged file
already is left alone.

--host is the registry as nodes name it in images, if that is not the address that this program reads. Keys
that are revoked are left out, and so are identities. policy-controller reads summaries of keys only in
cosign's older form: attach them with cosign attach attestation (docs/how-to/hand-over.md). --summaries
names the repository that has them. The default is the repository of the image.`,
		Example: `  mlpromote export policy --for kyverno --env prod -o mlpromote-prod.yaml
  mlpromote export policy --for kyverno --env prod --check mlpromote-prod.yaml`,
		Args: command.Exactly(),
		RunE: func(c *cobra.Command, _ []string) error {
			if (file == "") == (check == "") {
				return registry.Errorf(registry.CodeInvalid, "export policy: want -o FILE or --check FILE")
			}
			if !slices.Contains([]string{ForKyverno, ForPolicyController}, consumer) {
				return registry.Errorf(registry.CodeInvalid, "--for %.40q: want %s or %s", consumer, ForPolicyController, ForKyverno)
			}
			if err := summariesFor(consumer, o.Summaries); err != nil {
				return err
			}
			if o.Model != "" {
				if err := registry.ValidateModel(o.Model); err != nil {
					return err
				}
			}
			o.Now = clock.Now()
			return v.With(c.Context(), func(i *wiring.Instance) error {
				a, err := Admit(c.Context(), &i.Registry, o)
				if err != nil {
					return err
				}
				if check != "" {
					return v.checkPolicy(check, consumer, a)
				}
				return v.writePolicy(file, consumer, a, o.Now)
			})
		},
	}
	c.Flags().StringVar(&consumer, "for", "", "kyverno or policy-controller")
	c.Flags().StringVar(&o.Environment, "env", "", "environment that something is promoted to")
	c.Flags().StringVar(&o.Model, "model", "", "only this model (default: every model of the environment)")
	c.Flags().StringVar(&o.Host, "host", "", "HOST[:PORT] of the registry in the names of images (default: the address that this program reads)")
	c.Flags().StringVar(&o.Summaries, "summaries", "", "HOST[:PORT]/REPOSITORY in which policy-controller finds summaries in cosign's older form (default: the repository of the image)")
	c.Flags().BoolVar(&o.RefuseBreakGlass, "refuse-break-glass", false, "do not admit releases that were promoted with skipped requirements")
	c.Flags().BoolVar(&o.Partial, "partial", false, "write it also with a token that may not read all models: denied digests are missing then")
	c.Flags().StringVarP(&file, "out", "o", "", "file to write")
	c.Flags().StringVar(&check, "check", "", "file of an earlier export: check whether it is current")
	command.Required(c, "for", "env")
	return c
}

// summariesFor checks the name of a repository for summaries, if there is one.
func summariesFor(consumer, repository string) error {
	if repository == "" {
		return nil
	}
	if consumer != ForPolicyController {
		return registry.Errorf(registry.CodeInvalid, "--summaries: %s finds summaries by itself: want --for %s", consumer, ForPolicyController)
	}
	host, name, _ := strings.Cut(repository, "/")
	if err := registry.ValidateHost(host); err != nil {
		return err
	}
	if !registry.ValidRepository(name) {
		return registry.Errorf(registry.CodeInvalid, "--summaries %.200q: want HOST[:PORT]/REPOSITORY", repository)
	}
	return nil
}

// writePolicy writes the file, unless it says the same already. It does not go back to an older restriction list.
func (v Verbs) writePolicy(file, consumer string, a Admission, now time.Time) error {
	done := WrittenPolicy{File: file, For: consumer, ExportedAt: now.UTC().Truncate(time.Second), Admission: a}
	before, err := CheckPolicy(file, consumer, a)
	switch {
	case registry.HasCode(err, registry.CodeTrust):
		return err
	case err == nil && before.Current:
		done.Unchanged, done.ExportedAt = true, before.ExportedAt
		return v.UI.Result(done.text(), done)
	}
	text, err := a.YAML(consumer, now)
	if err != nil {
		return err
	}
	if err := Write(file, []byte(text)); err != nil {
		return err
	}
	for _, l := range a.LeftOut {
		v.UI.Note("left out: %s: %s", l.Entry, l.Why)
	}
	return v.UI.Result(done.text(), done)
}

func (v Verbs) checkPolicy(file, consumer string, a Admission) error {
	s, err := CheckPolicy(file, consumer, a)
	if err != nil {
		return err
	}
	done := WrittenPolicy{File: file, For: consumer, ExportedAt: s.ExportedAt, Current: &s.Current, Differences: s.Differences, Admission: a}
	if s.Current {
		return v.UI.Result(fmt.Sprintf("%s is current: exported on %s, restriction list %d",
			ui.Plain(file), s.ExportedAt.Format(time.RFC3339), a.RestrictionList), done)
	}
	text := ""
	for _, d := range s.Differences {
		text += ui.Plain(d) + "\n"
	}
	stale := registry.WithHint(registry.Errorf(registry.CodePolicy, "%s, exported on %s, is not current", file, s.ExportedAt.Format(time.RFC3339)),
		"mlpromote export policy with -o in place of --check, and apply the file")
	return errors.Join(v.UI.Result(text, done), stale)
}

func (w WrittenPolicy) text() string {
	text := ""
	if w.Unchanged {
		text = "unchanged: the file is current\n"
	}
	for _, row := range [][2]string{
		{"file", w.File}, {"images", w.Host}, {"resource", w.ResourceURI}, {"verifier", w.VerifierID}, {"restriction list", fmt.Sprint(w.RestrictionList)},
	} {
		text += row[0] + "  " + ui.Plain(row[1]) + "\n"
	}
	for _, k := range w.Keys {
		text += fmt.Sprintf("promoter  %s %s, %s\n", k.ID[:16], ui.Plain(k.Names[0]), k.State)
	}
	for _, d := range w.Denied {
		text += fmt.Sprintf("denied  %s %s of %s: %s\n", d.Digest, d.Kind, ui.Plain(d.Model), fmt.Sprint(d.Unmet))
	}
	return text
}
