// Writes what containerd's and CRI-O's own loaders take from CNI configuration directories, one JSON object a directory.
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	gocni "github.com/containerd/go-cni"
	"github.com/containernetworking/cni/libcni"
	"github.com/cri-o/ocicni/pkg/ocicni"
	"github.com/sirupsen/logrus"
)

// The chain that a runtime runs for a pod.
type loaded struct {
	Name  string   `json:"name"`
	Types []string `json:"types"`
	File  string   `json:"file,omitempty"`
	Error string   `json:"error,omitempty"`
}

type answer struct {
	Containerd loaded `json:"containerd"`
	CRIO       loaded `json:"crio"`
}

func failed(err error) loaded {
	return loaded{Types: []string{}, Error: err.Error()}
}

// As containerd's CRI does by default (max_conf_num = 1).
func byContainerd(dir string) loaded {
	cni, err := gocni.New(gocni.WithPluginConfDir(dir), gocni.WithPluginMaxConfNum(1))
	if err != nil {
		return failed(err)
	}
	if err := cni.Load(gocni.WithDefaultConf); err != nil {
		return failed(err)
	}
	found := loaded{Types: []string{}}
	for _, network := range cni.GetConfig().Networks {
		found.Name = network.Config.Name
		for _, plugin := range network.Config.Plugins {
			found.Types = append(found.Types, plugin.Network.Type)
		}
	}
	return found
}

// Records in which file CRI-O's loader found each network: it tells only its log.
type files struct{ found []string }

func (*files) Levels() []logrus.Level { return []logrus.Level{logrus.InfoLevel} }

func (f *files) Fire(entry *logrus.Entry) error {
	if strings.HasPrefix(entry.Message, "Found CNI network ") {
		_, path, _ := strings.Cut(entry.Message, ") at ")
		f.found = append(f.found, path)
	}
	return nil
}

// @param network CRI-O's cni_default_network
func byCRIO(dir, plugins, network string, f *files) loaded {
	f.found = nil
	plugin, err := ocicni.InitCNINoInotify(network, dir, "", plugins)
	if err != nil {
		return failed(err)
	}
	name := plugin.GetDefaultNetworkName()
	if err := plugin.Status(); err != nil {
		return failed(err)
	}
	for _, path := range f.found {
		list, err := read(path)
		if err != nil {
			return failed(err)
		}
		if list.Name == "" {
			list.Name = filepath.Base(path)
		}
		if list.Name != name {
			continue
		}
		found := loaded{Name: name, Types: []string{}, File: filepath.Base(path)}
		for _, each := range list.Plugins {
			found.Types = append(found.Types, each.Network.Type)
		}
		return found
	}
	return failed(fmt.Errorf("no file has the network %q", name))
}

func read(path string) (*libcni.NetworkConfigList, error) {
	if strings.HasSuffix(path, ".conflist") {
		return libcni.ConfListFromFile(path)
	}
	single, err := libcni.ConfFromFile(path)
	if err != nil {
		return nil, err
	}
	return libcni.ConfListFromConf(single)
}

func main() {
	// CRI-O asks the plugins of a list for the versions that they support, which the tests leave aside: all are.
	if os.Getenv("CNI_COMMAND") == "VERSION" {
		fmt.Println(`{"cniVersion":"1.1.0","supportedVersions":["0.1.0","0.3.1","0.4.0","1.0.0","1.1.0","1","+1.0","x","true"]}`)
		return
	}
	plugins := flag.String("plugins", "", "the plugin directory")
	network := flag.String("network", "", "CRI-O's cni_default_network")
	flag.Parse()
	f := &files{}
	logrus.SetOutput(io.Discard)
	logrus.AddHook(f)
	out := json.NewEncoder(os.Stdout)
	for _, dir := range flag.Args() {
		if err := out.Encode(answer{byContainerd(dir), byCRIO(dir, *plugins, *network, f)}); err != nil {
			os.Exit(1)
		}
	}
}
