package drafting

import (
	"context"

	"github.com/spf13/cobra"

	"mlpromote.dev/mlpromote/cmd/internal/command"
	"mlpromote.dev/mlpromote/cmd/mlpromote/internal/program"
	"mlpromote.dev/mlpromote/cmd/mlpromote/internal/recording"
	"mlpromote.dev/mlpromote/cmd/mlpromote/internal/toolchains"
	"mlpromote.dev/mlpromote/pipeline/ingest"
	"mlpromote.dev/mlpromote/pipeline/run"
	"mlpromote.dev/mlpromote/pipeline/spec"
	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/validators"
)

func casesCommand(a *program.App) *cobra.Command {
	return command.Group("cases", "Record cases, and keep some apart for calibration", casesRecordCommand(a), casesSplitCommand(a))
}

func casesRecordCommand(a *program.App) *cobra.Command {
	var flags recording.Flags
	c := &cobra.Command{
		Use:   "record [MODEL.onnx]",
		Short: "Make a folder of cases from a running service, a file or images",
		Long: `With --proxy, forwards requests to a service of the Open Inference Protocol v2 over REST (Triton,
KServe, MLServer and others) and records their inputs until it is interrupted. The service and
its clients notice nothing of it: a request that cannot be recorded is forwarded all the same.
Each row of a batch is a case. Of equal cases one is kept, and of more than --count a random
sample over the whole time. gRPC is not recorded.

With --from, makes cases of a file (.npz, .csv, .parquet, .safetensors), converted to the types and
shapes of the model, or of a folder of PNG and JPEG images with one subfolder for each class.

The model is MODEL.onnx, or the model of a spec (-f), which may be of another format and is then imported. With --proxy it may be left out; then the
service is asked for the shapes.

Cases hold the data of your users. They become sources of a release, which stay in the first
environment and are not promoted. --input records only the inputs that it names.`,
		Example: `  mlpromote cases record --to recorded --proxy http://127.0.0.1:8000 --listen 127.0.0.1:8001 --model digits
  mlpromote cases record digits.onnx --to recorded --from test.npz --label y
  mlpromote cases record resnet50.onnx --to recorded --from photos --fit crop --scale 1/255 --mean 0.485,0.456,0.406 --std 0.229,0.224,0.225`,
		Args: command.AtMost("MODEL.onnx"),
		RunE: func(c *cobra.Command, args []string) error {
			a.Subject = flags.To
			model := ""
			if len(args) == 1 {
				model = args[0]
			}
			return flags.Run(c, a.UI, func(ctx context.Context, file string) (validators.Interface, error) {
				return inputsOfSpec(ctx, a, file)
			}, model)
		},
	}
	flags.Define(c)
	command.Required(c, "to")
	return c
}

// inputsOfSpec gives the inputs of the model of a spec, which is imported if it is not ONNX.
func inputsOfSpec(ctx context.Context, a *program.App, file string) (validators.Interface, error) {
	s, err := a.Toolchains().LoadSpec(file)
	if err != nil {
		return validators.Interface{}, registry.WithHint(err, "MODEL.onnx in place of a spec describes the inputs too")
	}
	if s.Source.Format == spec.FormatONNX { // which takes no toolchain
		return ingest.InputsOfSpec(ctx, new(run.Env), s)
	}
	m, err := a.Toolchains().OpenLocal()
	if err != nil {
		return validators.Interface{}, err
	}
	return ingest.InputsOfSpec(ctx, a.LocalPipeline(m, toolchains.Replacements{}.Or(s), a.Toolchains().InstallMissing), s)
}

func casesSplitCommand(a *program.App) *cobra.Command {
	var split recording.Split
	c := &cobra.Command{
		Use:   "split FOLDER",
		Short: "Divide cases into some to verify with and some to calibrate with",
		Long: `Copies the cases of a folder into two new ones: --count of them, chosen at random, to
--calibration, and the others to --cases. Cases with the same inputs go to the same folder,
since build refuses calibration that contains one of the cases. FOLDER does not change.`,
		Example: "  mlpromote cases split recorded --cases cases --calibration calibration --count 200",
		Args:    command.Exactly("FOLDER"),
		RunE: func(_ *cobra.Command, args []string) error {
			return split.Run(a.UI, args[0])
		},
	}
	split.Define(c)
	command.Required(c, "cases", "calibration", "count")
	return c
}
