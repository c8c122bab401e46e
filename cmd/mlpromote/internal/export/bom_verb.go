package export

import (
	"fmt"

	"github.com/opencontainers/go-digest"
	"github.com/spf13/cobra"

	"mlpromote.dev/mlpromote/cmd/internal/command"
	"mlpromote.dev/mlpromote/cmd/internal/inspection"
	"mlpromote.dev/mlpromote/cmd/internal/ui"
	"mlpromote.dev/mlpromote/cmd/mlpromote/internal/wiring"
	"mlpromote.dev/mlpromote/registry"
)

// WrittenBOM is what export bom wrote.
type WrittenBOM struct {
	File   string          `json:"file"`
	Ref    string          `json:"ref"`
	Digest registry.Digest `json:"digest"` // of the file
}

// BOM writes a CycloneDX ML-BOM.
func (v Verbs) BOM() *cobra.Command {
	var file string
	c := &cobra.Command{
		Use:   "bom REF -o FILE",
		Short: "Write the ingredients and measurements of a release as a CycloneDX 1.7 ML-BOM",
		Long: `Writes a bill of materials in CycloneDX 1.7 (JSON): the model, its engines with the inputs they were made
from, calibration data and cases, toolchains and operator libraries, the figures of the newest reports with
their confidence intervals, and references to the evidence that counts. The same release and evidence give
the same bytes. The file is not signed, but the evidence is.`,
		Example: "  mlpromote export bom prod/vision/digits:1.0.0 -o digits.cdx.json",
		Args:    command.Exactly("REF"),
		RunE: func(c *cobra.Command, args []string) error {
			if file == "" {
				return registry.Errorf(registry.CodeInvalid, "export bom: want -o FILE")
			}
			ref, err := registry.ParseRef(args[0])
			if err != nil {
				return err
			}
			return v.With(c.Context(), func(i *wiring.Instance) error {
				ref, err := i.WithoutHost(ref)
				if err != nil {
					return err
				}
				found, err := inspection.Of(c.Context(), &i.Registry, ref)
				if err != nil {
					return err
				}
				data, err := BOM(found, i.Envs.ResourceURI(ref.Environment, ref.Model))
				if err != nil {
					return err
				}
				if err := Write(file, append(data, '\n')); err != nil {
					return err
				}
				done := WrittenBOM{File: file, Ref: found.Ref, Digest: digest.FromBytes(append(data, '\n'))}
				return v.UI.Result(fmt.Sprintf("%s: %s of %s", ui.Plain(file), registry.Count(len(found.Engines), "engine"), ui.Plain(found.Ref)), done)
			})
		},
	}
	c.Flags().StringVarP(&file, "out", "o", "", "file to write")
	return c
}
