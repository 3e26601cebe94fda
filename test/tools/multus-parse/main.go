// Reads annotations, one JSON object a line, and writes what Multus itself reads in each.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"

	"gopkg.in/k8snetworkplumbingwg/multus-cni.v4/pkg/k8sclient"
	"gopkg.in/k8snetworkplumbingwg/multus-cni.v4/pkg/logging"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

type question struct {
	Namespace string `json:"namespace"`
	Networks  string `json:"networks"`
}

type network struct {
	Name      string `json:"name"`
	Namespace string `json:"namespace"`
	Interface string `json:"interface"`
}

type answer struct {
	Networks []network `json:"networks"`
	Error    string    `json:"error,omitempty"`
}

func ask(q question) (a answer) {
	a.Networks = []network{}
	defer func() {
		if problem := recover(); problem != nil {
			a = answer{Networks: []network{}, Error: fmt.Sprint("panic: ", problem)}
		}
	}()
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Namespace:   q.Namespace,
		Annotations: map[string]string{"k8s.v1.cni.cncf.io/networks": q.Networks},
	}}
	found, err := k8sclient.GetPodNetwork(pod)
	if _, none := err.(*k8sclient.NoK8sNetworkError); none {
		return
	}
	if err != nil {
		a.Error = err.Error()
		return
	}
	for _, n := range found {
		a.Networks = append(a.Networks, network{n.Name, n.Namespace, n.InterfaceRequest})
	}
	return
}

func main() {
	logging.SetLogStderr(false)
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(nil, 1<<24)
	out := json.NewEncoder(os.Stdout)
	for lines.Scan() {
		var q question
		if err := json.Unmarshal(lines.Bytes(), &q); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		if err := out.Encode(ask(q)); err != nil {
			os.Exit(1)
		}
	}
}
