// placeholder replaced by the webgl2 work
