{{- define "linkerd-cni.dashboard" -}}
description: The plugin on every node, its installer, the repair controller, and the NRI plugin
editable: true
graphTooltip: 1
links:
  - icon: doc
    targetBlank: true
    title: Runbooks
    type: link
    url: https://github.com/linkerd-cni-cdk8s/linkerd-cni/blob/main/docs/runbooks/README.md
panels:
  - collapsed: false
    gridPos:
      h: 1
      w: 24
      x: 0
      "y": 0
    id: 1
    panels: []
    title: Now
    type: row
  - datasource:
      type: prometheus
      uid: $datasource
    description: "Nodes whose installer's /ready is 200: new meshed pods are redirected there."
    fieldConfig:
      defaults:
        min: 0
        thresholds:
          mode: absolute
          steps:
            - color: green
        unit: short
      overrides: []
    gridPos:
      h: 4
      w: 4
      x: 0
      "y": 1
    id: 2
    links: []
    options:
      colorMode: value
      graphMode: area
      reduceOptions:
        calcs:
          - lastNotNull
    targets:
      - datasource:
          type: prometheus
          uid: $datasource
        expr: sum(linkerd_cni_ready{node=~"$node"})
        legendFormat: __auto
        refId: A
    title: How many nodes are ready?
    type: stat
  - datasource:
      type: prometheus
      uid: $datasource
    description: Nodes whose installer runs and is not ready. Meshed pods may start there without redirect, or not at all.
    fieldConfig:
      defaults:
        min: 0
        thresholds:
          mode: absolute
          steps:
            - color: green
            - color: red
              value: 1
        unit: short
      overrides: []
    gridPos:
      h: 4
      w: 4
      x: 4
      "y": 1
    id: 3
    links:
      - targetBlank: true
        title: LinkerdCNINotReady
        url: https://github.com/linkerd-cni-cdk8s/linkerd-cni/blob/main/docs/runbooks/LinkerdCNINotReady.md
      - targetBlank: true
        title: LinkerdCNINotConfigured
        url: https://github.com/linkerd-cni-cdk8s/linkerd-cni/blob/main/docs/runbooks/LinkerdCNINotConfigured.md
    options:
      colorMode: value
      graphMode: area
      reduceOptions:
        calcs:
          - lastNotNull
    targets:
      - datasource:
          type: prometheus
          uid: $datasource
        expr: count(linkerd_cni_ready{node=~"$node"} == 0) or vector(0)
        legendFormat: __auto
        refId: A
    title: How many nodes are not ready?
    type: stat
  - datasource:
      type: prometheus
      uid: $datasource
    description: Pods that the plugin has kept from starting; the kubelet tries again.
    fieldConfig:
      defaults:
        min: 0
        thresholds:
          mode: absolute
          steps:
            - color: green
            - color: red
              value: 1
        unit: short
      overrides: []
    gridPos:
      h: 4
      w: 4
      x: 8
      "y": 1
    id: 4
    links:
      - targetBlank: true
        title: LinkerdCNIAddErrors
        url: https://github.com/linkerd-cni-cdk8s/linkerd-cni/blob/main/docs/runbooks/LinkerdCNIAddErrors.md
    options:
      colorMode: value
      graphMode: area
      reduceOptions:
        calcs:
          - lastNotNull
    targets:
      - datasource:
          type: prometheus
          uid: $datasource
        expr: sum((linkerd_cni_plugin_calls_total{node=~"$node", verb="ADD", code!=""} unless linkerd_cni_plugin_calls_total{node=~"$node", verb="ADD", code!=""} offset 1h or increase(linkerd_cni_plugin_calls_total{node=~"$node", verb="ADD", code!=""}[1h]))) or vector(0)
        legendFormat: __auto
        refId: A
    title: How many pods failed to start in 1 h?
    type: stat
  - datasource:
      type: prometheus
      uid: $datasource
    description: How often another program has taken the plugin out of the CNI configuration.
    fieldConfig:
      defaults:
        min: 0
        thresholds:
          mode: absolute
          steps:
            - color: green
            - color: red
              value: 1
        unit: short
      overrides: []
    gridPos:
      h: 4
      w: 4
      x: 12
      "y": 1
    id: 5
    links:
      - targetBlank: true
        title: LinkerdCNIConfigContested
        url: https://github.com/linkerd-cni-cdk8s/linkerd-cni/blob/main/docs/runbooks/LinkerdCNIConfigContested.md
    options:
      colorMode: value
      graphMode: area
      reduceOptions:
        calcs:
          - lastNotNull
    targets:
      - datasource:
          type: prometheus
          uid: $datasource
        expr: sum((linkerd_cni_config_contested{node=~"$node"} unless linkerd_cni_config_contested{node=~"$node"} offset 1h or increase(linkerd_cni_config_contested{node=~"$node"}[1h]))) or vector(0)
        legendFormat: __auto
        refId: A
    title: How often did others undo the chain in 1 h?
    type: stat
  {{- if eq (toString (.Values.repairController).enabled) "true" }}
  - datasource:
      type: prometheus
      uid: $datasource
    description: Meshed pods that run without redirect.
    fieldConfig:
      defaults:
        min: 0
        thresholds:
          mode: absolute
          steps:
            - color: green
            - color: red
              value: 1
        unit: short
      overrides: []
    gridPos:
      h: 4
      w: 4
      x: 16
      "y": 1
    id: 6
    links:
      - targetBlank: true
        title: LinkerdCNINotRedirected
        url: https://github.com/linkerd-cni-cdk8s/linkerd-cni/blob/main/docs/runbooks/LinkerdCNINotRedirected.md
    options:
      colorMode: value
      graphMode: area
      reduceOptions:
        calcs:
          - lastNotNull
    targets:
      - datasource:
          type: prometheus
          uid: $datasource
        expr: sum(linkerd_cni_repair_controller_pods_not_redirected{node=~"$node"}) or vector(0)
        legendFormat: __auto
        refId: A
    title: How many pods are outside the mesh?
    type: stat
  {{- end }}
  {{- if eq (toString (.Values.repairController).enabled) "true" }}
  - datasource:
      type: prometheus
      uid: $datasource
    description: Owners whose pods come back broken, so that the repair controller has stopped deleting them.
    fieldConfig:
      defaults:
        min: 0
        thresholds:
          mode: absolute
          steps:
            - color: green
            - color: red
              value: 1
        unit: short
      overrides: []
    gridPos:
      h: 4
      w: 4
      x: 20
      "y": 1
    id: 7
    links:
      - targetBlank: true
        title: LinkerdCNIRepairSuspended
        url: https://github.com/linkerd-cni-cdk8s/linkerd-cni/blob/main/docs/runbooks/LinkerdCNIRepairSuspended.md
    options:
      colorMode: value
      graphMode: area
      reduceOptions:
        calcs:
          - lastNotNull
    targets:
      - datasource:
          type: prometheus
          uid: $datasource
        expr: sum(linkerd_cni_repair_controller_suspended_owners{node=~"$node"}) or vector(0)
        legendFormat: __auto
        refId: A
    title: How many owners are suspended?
    type: stat
  {{- end }}
  - collapsed: false
    gridPos:
      h: 1
      w: 24
      x: 0
      "y": 5
    id: 8
    panels: []
    title: Pod starts
    type: row
  - datasource:
      type: prometheus
      uid: $datasource
    description: Calls of the container runtimes a second, and what the plugin did.
    fieldConfig:
      defaults:
        min: 0
        thresholds:
          mode: absolute
          steps:
            - color: green
        unit: ops
      overrides: []
    gridPos:
      h: 8
      w: 8
      x: 0
      "y": 6
    id: 9
    links: []
    options:
      legend:
        displayMode: list
        placement: bottom
      tooltip:
        mode: multi
        sort: desc
    targets:
      - datasource:
          type: prometheus
          uid: $datasource
        expr: sum by (verb, decision) (rate(linkerd_cni_plugin_calls_total{node=~"$node"}[$__rate_interval]))
        legendFormat: {{ "{{verb}} {{decision}}" | quote }}
        refId: A
      - datasource:
          type: prometheus
          uid: $datasource
        expr: sum by (way) (rate(linkerd_cni_plugin_lookups_total{node=~"$node"}[$__rate_interval]))
        legendFormat: {{ "lookup: {{way}}" | quote }}
        refId: B
    title: What does the plugin decide, and how does it look pods up?
    type: timeseries
  - datasource:
      type: prometheus
      uid: $datasource
    description: Failed calls a second, by the code of the CNI error.
    fieldConfig:
      defaults:
        min: 0
        thresholds:
          mode: absolute
          steps:
            - color: green
        unit: ops
      overrides: []
    gridPos:
      h: 8
      w: 8
      x: 8
      "y": 6
    id: 10
    links:
      - targetBlank: true
        title: LinkerdCNIAddErrors
        url: https://github.com/linkerd-cni-cdk8s/linkerd-cni/blob/main/docs/runbooks/LinkerdCNIAddErrors.md
    options:
      legend:
        displayMode: list
        placement: bottom
      tooltip:
        mode: multi
        sort: desc
    targets:
      - datasource:
          type: prometheus
          uid: $datasource
        expr: sum by (verb, code) (rate(linkerd_cni_plugin_calls_total{node=~"$node", code!=""}[$__rate_interval]))
        legendFormat: {{ "{{verb}} {{code}}" | quote }}
        refId: A
    title: Why do calls fail? By code
    type: timeseries
  - datasource:
      type: prometheus
      uid: $datasource
    description: From the start of the plugin's process to its end.
    fieldConfig:
      defaults:
        min: 0
        thresholds:
          mode: absolute
          steps:
            - color: green
        unit: s
      overrides: []
    gridPos:
      h: 8
      w: 8
      x: 16
      "y": 6
    id: 11
    links:
      - targetBlank: true
        title: LinkerdCNIAddSlow
        url: https://github.com/linkerd-cni-cdk8s/linkerd-cni/blob/main/docs/runbooks/LinkerdCNIAddSlow.md
    options:
      legend:
        displayMode: list
        placement: bottom
      tooltip:
        mode: multi
        sort: desc
    targets:
      - datasource:
          type: prometheus
          uid: $datasource
        expr: histogram_quantile(0.5, sum by (le) (rate(linkerd_cni_plugin_seconds_bucket{node=~"$node", verb="ADD"}[$__rate_interval])))
        legendFormat: p50
        refId: A
      - datasource:
          type: prometheus
          uid: $datasource
        expr: histogram_quantile(0.9, sum by (le) (rate(linkerd_cni_plugin_seconds_bucket{node=~"$node", verb="ADD"}[$__rate_interval])))
        legendFormat: p90
        refId: B
      - datasource:
          type: prometheus
          uid: $datasource
        expr: histogram_quantile(0.99, sum by (le) (rate(linkerd_cni_plugin_seconds_bucket{node=~"$node", verb="ADD"}[$__rate_interval])))
        legendFormat: p99
        refId: C
    title: How long does an ADD take?
    type: timeseries
  - collapsed: false
    gridPos:
      h: 1
      w: 24
      x: 0
      "y": 14
    id: 12
    panels: []
    title: Where an ADD's time goes
    type: row
  - datasource:
      type: prometheus
      uid: $datasource
    description: "What an ADD waits for: the API server, and the kernel that sets the rules."
    fieldConfig:
      defaults:
        min: 0
        thresholds:
          mode: absolute
          steps:
            - color: green
        unit: s
      overrides: []
    gridPos:
      h: 8
      w: 8
      x: 0
      "y": 15
    id: 13
    links:
      - targetBlank: true
        title: LinkerdCNIAddSlow
        url: https://github.com/linkerd-cni-cdk8s/linkerd-cni/blob/main/docs/runbooks/LinkerdCNIAddSlow.md
      - targetBlank: true
        title: LinkerdCNIApiUnreachable
        url: https://github.com/linkerd-cni-cdk8s/linkerd-cni/blob/main/docs/runbooks/LinkerdCNIApiUnreachable.md
    options:
      legend:
        displayMode: list
        placement: bottom
      tooltip:
        mode: multi
        sort: desc
    targets:
      - datasource:
          type: prometheus
          uid: $datasource
        expr: histogram_quantile(0.99, sum by (le) (rate(linkerd_cni_plugin_lookup_seconds_bucket{node=~"$node"}[$__rate_interval])))
        legendFormat: lookup
        refId: A
      - datasource:
          type: prometheus
          uid: $datasource
        expr: histogram_quantile(0.99, sum by (le) (rate(linkerd_cni_plugin_rules_seconds_bucket{node=~"$node"}[$__rate_interval])))
        legendFormat: rules
        refId: B
    title: "Lookup or rules: which is slow? p99"
    type: timeseries
  - datasource:
      type: prometheus
      uid: $datasource
    description: Requests to the API server in one ADD. Pods that are not meshed need none.
    fieldConfig:
      defaults:
        min: 0
        thresholds:
          mode: absolute
          steps:
            - color: green
        unit: short
      overrides: []
    gridPos:
      h: 8
      w: 8
      x: 8
      "y": 15
    id: 14
    links: []
    options:
      legend:
        displayMode: list
        placement: bottom
      tooltip:
        mode: multi
        sort: desc
    targets:
      - datasource:
          type: prometheus
          uid: $datasource
        expr: sum(rate(linkerd_cni_plugin_api_requests_sum{node=~"$node", verb="ADD"}[$__rate_interval])) / sum(rate(linkerd_cni_plugin_api_requests_count{node=~"$node", verb="ADD"}[$__rate_interval]))
        legendFormat: mean
        refId: A
    title: How many API requests does an ADD send?
    type: timeseries
  - datasource:
      type: prometheus
      uid: $datasource
    description: The five nodes on which an ADD takes longest.
    fieldConfig:
      defaults:
        min: 0
        thresholds:
          mode: absolute
          steps:
            - color: green
        unit: s
      overrides: []
    gridPos:
      h: 8
      w: 8
      x: 16
      "y": 15
    id: 15
    links:
      - targetBlank: true
        title: LinkerdCNIAddSlow
        url: https://github.com/linkerd-cni-cdk8s/linkerd-cni/blob/main/docs/runbooks/LinkerdCNIAddSlow.md
    options:
      legend:
        displayMode: list
        placement: bottom
      tooltip:
        mode: multi
        sort: desc
    targets:
      - datasource:
          type: prometheus
          uid: $datasource
        expr: topk(5, histogram_quantile(0.99, sum by (le, node, pod) (rate(linkerd_cni_plugin_seconds_bucket{node=~"$node", verb="ADD"}[$__rate_interval]))))
        legendFormat: {{ "{{node}} {{pod}}" | quote }}
        refId: A
    title: Which nodes are slowest? p99 of ADD
    type: timeseries
  - collapsed: false
    gridPos:
      h: 1
      w: 24
      x: 0
      "y": 23
    id: 16
    panels: []
    title: Installer
    type: row
  - datasource:
      type: prometheus
      uid: $datasource
    description: Nodes with the plugin in their CNI configuration, nodes that are ready, and nodes that reach the API server.
    fieldConfig:
      defaults:
        min: 0
        thresholds:
          mode: absolute
          steps:
            - color: green
        unit: short
      overrides: []
    gridPos:
      h: 8
      w: 8
      x: 0
      "y": 24
    id: 17
    links:
      - targetBlank: true
        title: LinkerdCNIDown
        url: https://github.com/linkerd-cni-cdk8s/linkerd-cni/blob/main/docs/runbooks/LinkerdCNIDown.md
    options:
      legend:
        displayMode: list
        placement: bottom
      tooltip:
        mode: multi
        sort: desc
    targets:
      - datasource:
          type: prometheus
          uid: $datasource
        expr: sum(linkerd_cni_chained{node=~"$node"})
        legendFormat: chained
        refId: A
      - datasource:
          type: prometheus
          uid: $datasource
        expr: sum(linkerd_cni_ready{node=~"$node"})
        legendFormat: ready
        refId: B
      - datasource:
          type: prometheus
          uid: $datasource
        expr: sum(linkerd_cni_api_server_reachable{node=~"$node"})
        legendFormat: API server reachable
        refId: C
    title: Is each node chained, ready, and in reach of the API server?
    type: timeseries
  - datasource:
      type: prometheus
      uid: $datasource
    description: Files that installers write, a second. Few, except at updates.
    fieldConfig:
      defaults:
        min: 0
        thresholds:
          mode: absolute
          steps:
            - color: green
        unit: ops
      overrides: []
    gridPos:
      h: 8
      w: 8
      x: 8
      "y": 24
    id: 18
    links: []
    options:
      legend:
        displayMode: list
        placement: bottom
      tooltip:
        mode: multi
        sort: desc
    targets:
      - datasource:
          type: prometheus
          uid: $datasource
        expr: sum by (step) (rate(linkerd_cni_installs_total{node=~"$node"}[$__rate_interval]))
        legendFormat: {{ "{{step}}" | quote }}
        refId: A
    title: Which files does the installer change? By step
    type: timeseries
  - datasource:
      type: prometheus
      uid: $datasource
    description: How often a second the plugin is put back into a CNI configuration, and who had taken it out.
    fieldConfig:
      defaults:
        min: 0
        thresholds:
          mode: absolute
          steps:
            - color: green
        unit: ops
      overrides: []
    gridPos:
      h: 8
      w: 8
      x: 16
      "y": 24
    id: 19
    links:
      - targetBlank: true
        title: LinkerdCNIConfigContested
        url: https://github.com/linkerd-cni-cdk8s/linkerd-cni/blob/main/docs/runbooks/LinkerdCNIConfigContested.md
      - targetBlank: true
        title: LinkerdCNIConfigInvalid
        url: https://github.com/linkerd-cni-cdk8s/linkerd-cni/blob/main/docs/runbooks/LinkerdCNIConfigInvalid.md
    options:
      legend:
        displayMode: list
        placement: bottom
      tooltip:
        mode: multi
        sort: desc
    targets:
      - datasource:
          type: prometheus
          uid: $datasource
        expr: sum by (file) (rate(linkerd_cni_rechains_total{node=~"$node"}[$__rate_interval]))
        legendFormat: {{ "{{file}}" | quote }}
        refId: A
      - datasource:
          type: prometheus
          uid: $datasource
        expr: sum by (file) (rate(linkerd_cni_config_contested{node=~"$node"}[$__rate_interval]))
        legendFormat: {{ "{{file}}" | quote }}
        refId: B
      - datasource:
          type: prometheus
          uid: $datasource
        expr: sum(rate(linkerd_cni_failures_total{node=~"$node"}[$__rate_interval]))
        legendFormat: looks that failed
        refId: C
    title: How often is the chain repaired?
    type: timeseries
  {{- if eq (toString (.Values.repairController).enabled) "true" }}
  - collapsed: false
    gridPos:
      h: 1
      w: 24
      x: 0
      "y": 32
    id: 21
    panels: []
    title: Repair controller
    type: row
  {{- end }}
  {{- if eq (toString (.Values.repairController).enabled) "true" }}
  - datasource:
      type: prometheus
      uid: $datasource
    description: Pods whose network validator failed, by node.
    fieldConfig:
      defaults:
        min: 0
        thresholds:
          mode: absolute
          steps:
            - color: green
        unit: short
      overrides: []
    gridPos:
      h: 8
      w: 6
      x: 0
      "y": 33
    id: 22
    links:
      - targetBlank: true
        title: LinkerdCNINotRepaired
        url: https://github.com/linkerd-cni-cdk8s/linkerd-cni/blob/main/docs/runbooks/LinkerdCNINotRepaired.md
    options:
      legend:
        displayMode: list
        placement: bottom
      tooltip:
        mode: multi
        sort: desc
    targets:
      - datasource:
          type: prometheus
          uid: $datasource
        expr: sum by (node, pod) (linkerd_cni_repair_controller_pods_broken{node=~"$node"})
        legendFormat: {{ "{{node}} {{pod}}" | quote }}
        refId: A
      - datasource:
          type: prometheus
          uid: $datasource
        expr: count(linkerd_cni_repair_controller_installer_ready{node=~"$node"} == 0)
        legendFormat: nodes that wait for the installer
        refId: B
    title: Which pods are broken?
    type: timeseries
  {{- end }}
  {{- if eq (toString (.Values.repairController).enabled) "true" }}
  - datasource:
      type: prometheus
      uid: $datasource
    description: What became of broken pods, a second.
    fieldConfig:
      defaults:
        min: 0
        thresholds:
          mode: absolute
          steps:
            - color: green
        unit: ops
      overrides: []
    gridPos:
      h: 8
      w: 6
      x: 6
      "y": 33
    id: 23
    links:
      - targetBlank: true
        title: LinkerdCNINotRepaired
        url: https://github.com/linkerd-cni-cdk8s/linkerd-cni/blob/main/docs/runbooks/LinkerdCNINotRepaired.md
      - targetBlank: true
        title: LinkerdCNIRepairSuspended
        url: https://github.com/linkerd-cni-cdk8s/linkerd-cni/blob/main/docs/runbooks/LinkerdCNIRepairSuspended.md
    options:
      legend:
        displayMode: list
        placement: bottom
      tooltip:
        mode: multi
        sort: desc
    targets:
      - datasource:
          type: prometheus
          uid: $datasource
        expr: sum(rate(linkerd_cni_repair_controller_pods_deleted_total{node=~"$node"}[$__rate_interval]))
        legendFormat: deleted
        refId: A
      - datasource:
          type: prometheus
          uid: $datasource
        expr: sum(rate(linkerd_cni_repair_controller_pods_delete_errors_total{node=~"$node"}[$__rate_interval]))
        legendFormat: refused
        refId: B
      - datasource:
          type: prometheus
          uid: $datasource
        expr: sum(rate(linkerd_cni_repair_controller_pods_delete_timeout_total{node=~"$node"}[$__rate_interval]))
        legendFormat: no answer
        refId: C
      - datasource:
          type: prometheus
          uid: $datasource
        expr: sum(rate(linkerd_cni_repair_controller_pods_left_total{node=~"$node"}[$__rate_interval]))
        legendFormat: left alone
        refId: D
      - datasource:
          type: prometheus
          uid: $datasource
        expr: sum(rate(linkerd_cni_repair_controller_suspensions_total{node=~"$node"}[$__rate_interval]))
        legendFormat: owner suspended
        refId: E
    title: Which pods does the controller delete?
    type: timeseries
  {{- end }}
  {{- if eq (toString (.Values.repairController).enabled) "true" }}
  - datasource:
      type: prometheus
      uid: $datasource
    description: How long the API server takes for the repair controller's requests.
    fieldConfig:
      defaults:
        min: 0
        thresholds:
          mode: absolute
          steps:
            - color: green
        unit: s
      overrides: []
    gridPos:
      h: 8
      w: 6
      x: 12
      "y": 33
    id: 24
    links: []
    options:
      legend:
        displayMode: list
        placement: bottom
      tooltip:
        mode: multi
        sort: desc
    targets:
      - datasource:
          type: prometheus
          uid: $datasource
        expr: histogram_quantile(0.99, sum by (le) (rate(linkerd_cni_repair_controller_pods_delete_latency_seconds_bucket{node=~"$node"}[$__rate_interval])))
        legendFormat: deletion
        refId: A
      - datasource:
          type: prometheus
          uid: $datasource
        expr: histogram_quantile(0.99, sum by (le) (rate(linkerd_cni_repair_controller_events_publish_latency_seconds_bucket{node=~"$node"}[$__rate_interval])))
        legendFormat: Event
        refId: B
    title: How long do a deletion and an Event take? p99
    type: timeseries
  {{- end }}
  {{- if eq (toString (.Values.repairController).enabled) "true" }}
  - datasource:
      type: prometheus
      uid: $datasource
    description: What the repair controller could not do, a second.
    fieldConfig:
      defaults:
        min: 0
        thresholds:
          mode: absolute
          steps:
            - color: green
        unit: ops
      overrides: []
    gridPos:
      h: 8
      w: 6
      x: 18
      "y": 33
    id: 25
    links: []
    options:
      legend:
        displayMode: list
        placement: bottom
      tooltip:
        mode: multi
        sort: desc
    targets:
      - datasource:
          type: prometheus
          uid: $datasource
        expr: sum(rate(linkerd_cni_repair_controller_watch_errors_total{node=~"$node"}[$__rate_interval]))
        legendFormat: broken watches
        refId: A
      - datasource:
          type: prometheus
          uid: $datasource
        expr: sum(rate(linkerd_cni_repair_controller_events_publish_errors_total{node=~"$node"}[$__rate_interval]))
        legendFormat: Events refused
        refId: B
      - datasource:
          type: prometheus
          uid: $datasource
        expr: sum(rate(linkerd_cni_repair_controller_events_publish_timeouts_total{node=~"$node"}[$__rate_interval]))
        legendFormat: Events without answer
        refId: C
      - datasource:
          type: prometheus
          uid: $datasource
        expr: sum(rate(linkerd_cni_repair_controller_queue_overflow_total{node=~"$node"}[$__rate_interval]))
        legendFormat: pods not looked at
        refId: D
    title: What keeps the controller from its work?
    type: timeseries
  {{- end }}
  {{- if eq (toString (.Values.nri).enabled) "true" }}
  - collapsed: false
    gridPos:
      h: 1
      w: 24
      x: 0
      "y": 41
    id: 26
    panels: []
    title: NRI plugin
    type: row
  {{- end }}
  {{- if eq (toString (.Values.nri).enabled) "true" }}
  - datasource:
      type: prometheus
      uid: $datasource
    description: Nodes whose runtime is connected to the NRI plugin, and nodes whose running pods it has looked at.
    fieldConfig:
      defaults:
        min: 0
        thresholds:
          mode: absolute
          steps:
            - color: green
        unit: short
      overrides: []
    gridPos:
      h: 8
      w: 6
      x: 0
      "y": 42
    id: 27
    links:
      - targetBlank: true
        title: LinkerdCNINriNotConnected
        url: https://github.com/linkerd-cni-cdk8s/linkerd-cni/blob/main/docs/runbooks/LinkerdCNINriNotConnected.md
    options:
      legend:
        displayMode: list
        placement: bottom
      tooltip:
        mode: multi
        sort: desc
    targets:
      - datasource:
          type: prometheus
          uid: $datasource
        expr: sum(linkerd_cni_nri_connected{node=~"$node"})
        legendFormat: connected
        refId: A
      - datasource:
          type: prometheus
          uid: $datasource
        expr: sum(linkerd_cni_nri_synchronized{node=~"$node"})
        legendFormat: synchronized
        refId: B
    title: Is the NRI plugin connected and synchronized?
    type: timeseries
  {{- end }}
  {{- if eq (toString (.Values.nri).enabled) "true" }}
  - datasource:
      type: prometheus
      uid: $datasource
    description: Pods that the NRI plugin looks at, a second.
    fieldConfig:
      defaults:
        min: 0
        thresholds:
          mode: absolute
          steps:
            - color: green
        unit: ops
      overrides: []
    gridPos:
      h: 8
      w: 6
      x: 6
      "y": 42
    id: 28
    links:
      - targetBlank: true
        title: LinkerdCNIRedirectNotMended
        url: https://github.com/linkerd-cni-cdk8s/linkerd-cni/blob/main/docs/runbooks/LinkerdCNIRedirectNotMended.md
    options:
      legend:
        displayMode: list
        placement: bottom
      tooltip:
        mode: multi
        sort: desc
    targets:
      - datasource:
          type: prometheus
          uid: $datasource
        expr: sum by (event, outcome) (rate(linkerd_cni_nri_pods_total{node=~"$node"}[$__rate_interval]))
        legendFormat: {{ "{{event}} {{outcome}}" | quote }}
        refId: A
    title: What happens to pods? By event and outcome
    type: timeseries
  {{- end }}
  {{- if eq (toString (.Values.nri).enabled) "true" }}
  - datasource:
      type: prometheus
      uid: $datasource
    description: How long the runtime waits for the NRI plugin.
    fieldConfig:
      defaults:
        min: 0
        thresholds:
          mode: absolute
          steps:
            - color: green
        unit: s
      overrides: []
    gridPos:
      h: 8
      w: 6
      x: 12
      "y": 42
    id: 29
    links: []
    options:
      legend:
        displayMode: list
        placement: bottom
      tooltip:
        mode: multi
        sort: desc
    targets:
      - datasource:
          type: prometheus
          uid: $datasource
        expr: histogram_quantile(0.99, sum by (le, event) (rate(linkerd_cni_nri_call_duration_seconds_bucket{node=~"$node"}[$__rate_interval])))
        legendFormat: {{ "{{event}}" | quote }}
        refId: A
    title: How long does a pod take? p99
    type: timeseries
  {{- end }}
  {{- if eq (toString (.Values.nri).enabled) "true" }}
  - datasource:
      type: prometheus
      uid: $datasource
    description: Pods mended in place, connections and requests, a second.
    fieldConfig:
      defaults:
        min: 0
        thresholds:
          mode: absolute
          steps:
            - color: green
        unit: ops
      overrides: []
    gridPos:
      h: 8
      w: 6
      x: 18
      "y": 42
    id: 30
    links:
      - targetBlank: true
        title: LinkerdCNIRedirectMended
        url: https://github.com/linkerd-cni-cdk8s/linkerd-cni/blob/main/docs/runbooks/LinkerdCNIRedirectMended.md
    options:
      legend:
        displayMode: list
        placement: bottom
      tooltip:
        mode: multi
        sort: desc
    targets:
      - datasource:
          type: prometheus
          uid: $datasource
        expr: sum(rate(linkerd_cni_nri_mended_pods_total{node=~"$node"}[$__rate_interval]))
        legendFormat: mended pods
        refId: A
      - datasource:
          type: prometheus
          uid: $datasource
        expr: sum(rate(linkerd_cni_nri_connections_total{node=~"$node"}[$__rate_interval]))
        legendFormat: connections to the runtime
        refId: B
      - datasource:
          type: prometheus
          uid: $datasource
        expr: sum(rate(linkerd_cni_nri_lookups_total{node=~"$node"}[$__rate_interval]))
        legendFormat: API requests
        refId: C
    title: What did the NRI plugin do?
    type: timeseries
  {{- end }}
refresh: 1m
schemaVersion: 39
tags:
  - linkerd
  - cni
templating:
  list:
    - name: datasource
      label: Data source
      query: prometheus
      type: datasource
    - name: node
      allValue: .*
      current:
        text:
          - All
        value:
          - $__all
      datasource:
        type: prometheus
        uid: $datasource
      definition: label_values(linkerd_cni_ready, node)
      includeAll: true
      label: node
      multi: true
      query:
        query: label_values(linkerd_cni_ready, node)
        refId: node
      refresh: 2
      sort: 1
      type: query
time:
  from: now-6h
  to: now
title: Linkerd CNI
uid: linkerd-cni
{{- end }}
