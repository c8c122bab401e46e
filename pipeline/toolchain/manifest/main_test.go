package manifest_test

import (
	"context"
	"os"
	"testing"

	"mlpromote.dev/mlpromote/pipeline/toolchain/manifest"
	"mlpromote.dev/mlpromote/pipeline/toolchain/sandbox"
	"mlpromote.dev/mlpromote/pipeline/toolchain/toolchaintest"
)

// secrets are variables that no compiler may see.
var secrets = map[string]string{"COSIGN_PASSWORD": "open sesame", "MLPROMOTE_TOKEN": "mlp_token", "AWS_SECRET_ACCESS_KEY": "key of a cloud"}

func TestMain(m *testing.M) {
	if exit, keeper := sandbox.Enter(); keeper {
		os.Exit(exit)
	}
	for name, value := range secrets {
		if os.Args[0] != manifest.Args()[0] { // else this is the child, which has an environment of its own
			os.Setenv(name, value)
		}
	}
	os.Exit(toolchaintest.Main(m, map[string]func() int{
		manifest.Args()[0]: func() int { return manifest.Main(context.Background(), os.Stdin, os.Stderr) },
	}))
}
