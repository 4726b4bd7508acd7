"""The curator as a service: who may ask (accounts), what is kept (state), how it is served (service, api, pages)."""
