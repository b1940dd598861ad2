"""`ehcp serve`: lag for Prometheus and KEDA, from one process; needs the extra `metrics`.

- `command`: options, and the life of the process.
- `web`: the HTTP server. `metrics`: the metrics of Prometheus.
- `external_scaler`: KEDA's gRPC interface; needs the extra `keda`.
"""
