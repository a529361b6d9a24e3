// Jobs one after another: each begins when the one before it has completed. The same flight as pipeline, in plain Go.
//
// Nothing here waits. The flight prints the Jobs that should exist by now; it has looked at them, so it runs again when one
// of them changes.
package main

import (
	"encoding/json"
	"fmt"
	"os"
)

type pipeline struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Metadata   struct {
		Name      string `json:"name"`
		Namespace string `json:"namespace"`
	} `json:"metadata"`
	Spec struct {
		Steps   []step `json:"steps"`
		Retries int    `json:"retries"`
	} `json:"spec"`
}

type step struct {
	Name    string   `json:"name"`
	Image   string   `json:"image"`
	Command []string `json:"command"`
}

// What is asked of a Job.
type job struct {
	Status struct {
		Conditions []struct{ Type, Status, Message string } `json:"conditions"`
	} `json:"status"`
}

// condition says whether the Job has it, and with which message.
func (j job) condition(kind string) (string, bool) {
	for _, c := range j.Status.Conditions {
		if c.Type == kind && c.Status == "True" {
			return c.Message, true
		}
	}
	return "", false
}

type object = map[string]any

func main() {
	if err := flight(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func flight() error {
	var p pipeline
	if err := json.NewDecoder(os.Stdin).Decode(&p); err != nil {
		return fmt.Errorf("the input is not a pipeline: %w", err)
	}
	var output []object
	count := len(p.Spec.Steps)
	msg := fmt.Sprintf("all %d Jobs have completed", count)
	for i, s := range p.Spec.Steps {
		name := p.Metadata.Name + "-" + s.Name
		output = append(output, p.job(s, name))
		var live job
		if _, err := lookup(&live, "batch/v1", "Job", p.Metadata.Namespace, name); err != nil {
			return err
		}
		if why, failed := live.condition("Failed"); failed {
			msg = fmt.Sprintf("Job %s has failed (%d of %d): %s", name, i+1, count, why)
			break
		}
		if _, complete := live.condition("Complete"); !complete {
			msg = fmt.Sprintf("waiting for Job %s (%d of %d)", name, i+1, count)
			break
		}
	}
	// The pipeline itself among the resources: its status is what is said about it.
	output = append(output, object{
		"apiVersion": p.APIVersion,
		"kind":       p.Kind,
		"metadata":   p.Metadata,
		"status":     object{"msg": msg},
	})
	return json.NewEncoder(os.Stdout).Encode(output)
}

func (p pipeline) job(s step, name string) object {
	labels := object{"example.dev/pipeline": p.Metadata.Name, "example.dev/step": s.Name}
	container := object{"name": "step", "image": s.Image}
	if len(s.Command) > 0 {
		container["command"] = s.Command
	}
	return object{
		"apiVersion": "batch/v1",
		"kind":       "Job",
		"metadata":   object{"name": name, "namespace": p.Metadata.Namespace, "labels": labels},
		"spec": object{
			"backoffLimit": p.Spec.Retries,
			"template": object{
				"metadata": object{"labels": labels},
				"spec":     object{"restartPolicy": "Never", "containers": []object{container}},
			},
		},
	}
}
