from arrow_variants import address, busy_hub, hub, kept, scope, server, text, variant

__all__ = ["address", "busy_hub", "hub", "kept", "scope", "server", "text", "variant"]
