// Command sigstore-kms-softhsm is a plugin of sigstore's KMS protocol for keys in a PKCS #11
// module, by default SoftHSM. Tests sign with it, and it is an example for other modules.
//
//	softhsm://TOKEN/LABEL     the key pair with the label, in the token with that label
//
// SOFTHSM_PIN has the PIN of the user, SOFTHSM_MODULE the path of another PKCS #11 module.
package main

import (
	"fmt"
	"os"

	"github.com/sigstore/sigstore/pkg/signature/kms/cliplugin/handler"
)

func main() {
	err := answer(os.Args)
	if err == nil {
		return
	}
	if err := handler.WriteErrorResponse(os.Stdout, err); err != nil {
		fmt.Fprintln(os.Stderr, "sigstore-kms-softhsm:", err)
	}
	os.Exit(1)
}

// answer makes one call of the protocol, and writes its response, also that the call failed. It
// returns the errors before that.
func answer(command []string) error {
	args, err := handler.GetPluginArgs(command)
	if err != nil {
		return err
	}
	key, err := openKey(args.InitOptions.KeyResourceID)
	if err != nil {
		return err
	}
	defer key.close()
	_, err = handler.Dispatch(os.Stdout, os.Stdin, args, key)
	return err
}
