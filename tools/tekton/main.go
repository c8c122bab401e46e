// Command tekton checks the task of Tekton that is in a file, as the controller of Tekton does when it is applied.
package main

import (
	"context"
	"fmt"
	"os"

	v1 "github.com/tektoncd/pipeline/pkg/apis/pipeline/v1"
	"sigs.k8s.io/yaml"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: tekton FILE")
		os.Exit(2)
	}
	if err := check(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func check(path string) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	var task v1.Task
	if err := yaml.UnmarshalStrict(text, &task); err != nil {
		return err
	}
	if task.APIVersion != "tekton.dev/v1" || task.Kind != "Task" {
		return fmt.Errorf("%s is a %s of %s: want a Task of tekton.dev/v1", path, task.Kind, task.APIVersion)
	}
	ctx := context.Background()
	task.SetDefaults(ctx)
	if err := task.Validate(ctx); err != nil {
		return err
	}
	return nil
}
